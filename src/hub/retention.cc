#include "hub/retention.h"

#include "base/log.h"
#include "net/event.h"

namespace cay::hub {
namespace {

constexpr Millis kEvery{30'000};  // a busy hub ends thousands of jobs in minutes

}  // namespace

net::Task<Result<size_t>> forgetOldJobs(HubState& state, Retention retention, int64_t nowMs) {
  CAY_CO_ASSIGN(const auto ids,
                co_await state.jobs.forgetEnded(nowMs - retention.mostAgeMs, retention.mostJobs));
  for (const std::string& id : ids) {
    const auto forgotten = co_await state.engine.forget(id);
    if (!forgotten && forgotten.error().code != Code::kNotFound) {
      log(Level::kWarn, "the logs of a forgotten job are still there",
          {{"job", id}, {"error", forgotten.error().message}});
    }
  }
  co_return ids.size();
}

net::Task<> keepForgetting(HubState& state, Retention retention) {
  while (true) {
    const auto count = co_await forgetOldJobs(state, retention, wallMs());
    if (!count) {
      log(Level::kWarn, "old jobs could not be forgotten", {{"error", count.error().message}});
    }
    co_await net::sleepFor(kEvery);
  }
}

}  // namespace cay::hub
