// How long ended jobs are remembered: their rows and their logs go together.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/error.h"
#include "hub/hub_state.h"
#include "net/task.h"

namespace cay::hub {

struct Retention {
  int64_t mostAgeMs = int64_t{7} * 86'400'000;  // since their end
  uint64_t mostJobs = 10'000;                   // ended ones
};

// Forgets what is too old or too much by now; gives the number of jobs.
net::Task<Result<size_t>> forgetOldJobs(HubState& state, Retention retention, int64_t nowMs);
// Now and then, as long as the loop runs.
net::Task<> keepForgetting(HubState& state, Retention retention);

}  // namespace cay::hub
