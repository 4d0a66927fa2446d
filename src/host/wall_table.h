// What was found out about the walls of this machine, for sandboxes of each kind.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "isolation/plan.h"
#include "isolation/walls.h"

namespace cay::host {

struct WallTable {
  isolation::Walls host;
  isolation::Walls none;        // empty where it cannot be had
  isolation::Wall limitedDisk;  // of sandboxes with disk_mb

  [[nodiscard]] isolation::Walls of(isolation::Network network,
                                    const isolation::Limits& limits) const;
  bool operator==(const WallTable&) const = default;
};

// {"<name>": {"verdict": …, "why": …}, …}
json::Object wallsObject(const isolation::Walls& walls);

// {"walls": …, "walls_network_none": …, "walls_disk_mb": …}, as `cay-host doctor --json` prints it;
// remedies are left out. Reading passes over what else there is; kInvalid names what is wrong.
json::Object wallTableObject(const WallTable& table);
Result<WallTable> readWallTable(const json::Object& object);

}  // namespace cay::host
