// The skeleton: the root folder of the image `host`, with a life of its own beside the machine's.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/error.h"

namespace cay::layers {

// What the image may show of the machine as it is, by the names below its root.
inline constexpr std::array<const char*, 8> kSystemFolders = {"usr",   "bin",   "sbin",   "lib",
                                                              "lib32", "lib64", "libx32", "opt"};
// Those of them that are folders here, open to everybody and not empty; where /usr is merged, "bin"
// and its like are links into it.
Result<std::vector<std::string>> systemFolders(int host);

// Fills the empty directory `skeleton` from the root directory `host`. Blocking.
Result<> buildSkeleton(int host, int skeleton);

}  // namespace cay::layers
