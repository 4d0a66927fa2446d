// What a job uses, as a stream of events: one at once, then one each second.
#pragma once

#include "engine/job.h"
#include "hub/api_call.h"

namespace cay::hub {

// 500 for a job that is over, which is what clients of every generation take for that.
net::Task<Result<>> streamMetrics(ApiCall& call);

struct UsageSample {
  int64_t atMs = 0;  // of the wall clock
  engine::Usage usage;
};
// How much it used since the earlier sample, in the words of the Hub. Pure.
json::Object metricsBetween(const UsageSample& earlier, const UsageSample& later);

}  // namespace cay::hub
