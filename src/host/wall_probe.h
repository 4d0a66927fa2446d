// Trying the walls of this machine: cay-host is run as a command in a throw-away sandbox and
// attempts what is forbidden.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "host/wall_table.h"
#include "isolation/plan.h"
#include "isolation/probe.h"
#include "net/task.h"
#include "sandbox/registry.h"

namespace cay::host {

// Makes a sandbox in the registry for each try and takes it away again. `program`: a cay-host.
net::Task<Result<WallTable>> tryWalls(sandbox::Registry& registry, isolation::Facts facts,
                                      std::string program = "/proc/self/exe");

// The walls that a mode promises; what else is held is a gift.
bool isPromised(isolation::Mode mode, std::string_view wall);

}  // namespace cay::host
