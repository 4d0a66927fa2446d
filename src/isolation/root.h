// A sandbox's own root, built on the stage by its keeper, which then lives in it.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

struct RootPlan {
  const Plan& plan;
  // Where on the stage the lowers of plan.root are, in the same order.
  const std::vector<std::vector<std::string>>& lowers;
  // A block device with a file system for the writable tops; not valid: they are folders.
  const Fd& disk;
};

// Mounts image layers, writable tops, /proc and /dev, makes the result the root of the calling
// process and takes the stage away. The process must be the first of new pid and mount namespaces.
// Returns the user namespace that commands are to enter.
Result<Fd> enterOwnRoot(const RootPlan& root);

}  // namespace cay::isolation
