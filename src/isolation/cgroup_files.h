// Where this process's control groups are in the file system.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cay::isolation {

// The folder of our own group in the cgroup v2 tree; nullopt where none is mounted or visible.
std::optional<std::string> ownGroupV2();
// The top of that tree, as far as it can be seen from here.
std::optional<std::string> rootGroupV2();
// Our own group in the v1 tree of one controller.
std::optional<std::string> ownGroupV1(std::string_view controller);

}  // namespace cay::isolation
