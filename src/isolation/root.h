// A sandbox's own root, built on the stage by its keeper, which then lives in it.
#pragma once

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"
#include "isolation/stage.h"

namespace cay::isolation {

struct RootPlan {
  const Plan& plan;
  const Placed& placed;
  // A block device with a file system for the writable tops; not valid: they are folders.
  const Fd& disk;
};

// Mounts image layers, writable tops, /proc, /dev and what is bound in, makes the result the root
// of the calling process and takes the stage away. The process must be the first of new pid and
// mount namespaces. Returns the user namespace that commands are to enter.
Result<Fd> enterOwnRoot(const RootPlan& root);

}  // namespace cay::isolation
