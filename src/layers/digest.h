// Digests as images name their parts by them: "sha256:" and 64 lower-case hex digits.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace cay::layers {

inline constexpr std::string_view kSha256 = "sha256:";

bool isDigest(std::string_view text);
// The digits alone.
std::string_view digestHex(std::string_view digest);
std::string digestOf(std::string_view bytes);
// Of what is left to read. Blocking.
Result<std::string> digestOfFile(int file);

}  // namespace cay::layers
