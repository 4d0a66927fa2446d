// Below which group of cgroup v2 ours are made.
//
// A group passes controllers on to those below it only while no process is in it itself (the root
// of the tree apart). So whoever wants limits for others has to stand beside them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cay::isolation {

// What a process that stands beside its groups is in. An operator may start us there.
inline constexpr char kAside[] = "cay-self";

// Moves this process below the group in which it was started, if it is alone there and the group
// is its own to divide; else nothing changes. To be called before it has children.
void standAside();

// The group that passes on most: our own, or the root of the tree where that is ours to use. Never
// beyond a group that one of us made, since that is a limit for us too. nullopt where no cgroup v2
// is mounted or visible.
std::optional<std::string> groupBaseV2();

// Those of memory, pids and cpu that the groups below this one can have.
std::vector<std::string> passedOn(const std::string& group);

}  // namespace cay::isolation
