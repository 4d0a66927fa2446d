// Trying the walls of this machine: this same program is run as a command in a throw-away sandbox
// and attempts what is forbidden.
#pragma once

#include "base/error.h"
#include "isolation/plan.h"
#include "isolation/probe.h"
#include "isolation/walls.h"
#include "net/task.h"
#include "sandbox/registry.h"

namespace cay::host {

// What was found, for sandboxes of each network.
struct WallTable {
  isolation::Walls host;
  isolation::Walls none;        // empty where it cannot be had
  isolation::Wall limitedDisk;  // of sandboxes with disk_mb

  [[nodiscard]] isolation::Walls of(isolation::Network network,
                                    const isolation::Limits& limits) const;
};

// Makes a sandbox in the registry for each try and takes it away again.
net::Task<Result<WallTable>> tryWalls(sandbox::Registry& registry, isolation::Facts facts);

// The walls that a mode promises; what else is held is a gift.
bool isPromised(isolation::Mode mode, std::string_view wall);

}  // namespace cay::host
