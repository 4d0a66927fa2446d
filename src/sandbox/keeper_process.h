// The keeper as a process of its own: this same program, started again under another name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sandbox/keeper.h"
#include "sandbox/keeper_link.h"

namespace cay::sandbox {

struct KeeperSettings {
  LogShape shape;
  std::string cgroupName;
  std::string noCgroups;  // why none are to be used; empty: try
  uint64_t commandOpenFiles = 1024;
};

// Starts /proc/self/exe as a keeper, in a session of its own and with an empty environment.
// `logFolder` must stay open as long as the spawner is used.
KeeperLink::Spawner keeperSpawner(KeeperSettings settings, int logFolder);

// The options that a spawner wrote into this process's arguments; nullopt if it is not to be a
// keeper.
std::optional<KeeperOptions> keeperArguments(const std::vector<std::string>& arguments);

}  // namespace cay::sandbox
