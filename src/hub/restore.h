// What an earlier hub left, taken up again.
#pragma once

#include "base/error.h"
#include "hub/hub_state.h"
#include "hub/scheduler.h"
#include "net/task.h"

namespace cay::hub {

// Reads the store, tells everybody what was in it, and opens the engine with the jobs that are not
// over. Must complete before the first request.
net::Task<Result<>> restoreHub(HubState& state, Scheduler& scheduler);

}  // namespace cay::hub
