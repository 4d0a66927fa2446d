// Where this process's control groups are in the file system, and what both versions have under
// different names.
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

// Drops what only caches hold of the memory that a group is charged for. One that is removed before
// that stays in the kernel until they let go of it.
void giveBackMemory(const std::string& group);

}  // namespace cay::isolation
