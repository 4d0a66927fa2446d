#include "hub/metric_routes.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cmath>

#include "base/clock.h"
#include "engine/flavors.h"
#include "hub/job_routes.h"
#include "hub/stream_guard.h"
#include "net/event_stream.h"

namespace cay::hub {
namespace {

constexpr int kOver = 500;
constexpr int64_t kEveryMs = 1'000;
constexpr size_t kReplicaLetters = 5;

// How much a counter has grown; one that began anew counts from 0.
double grown(uint64_t before, uint64_t after) {
  return static_cast<double>(after >= before ? after - before : after);
}

// From its start to now: of a job that is seen for the first time.
UsageSample sinceStart(const JobRow& row) {
  return {.atMs = row.startedMs, .usage = {}};
}

net::Task<Result<>> sendSamples(ApiCall& call, const Job& job, net::EventStream& events,
                                StreamGuard& guard) {
  const std::string replica = job.row.id.substr(0, kReplicaLetters);
  UsageSample before;
  int64_t nextMs = 0;  // of the monotonic clock
  while (!engine::isTerminal(job.row.stage)) {
    if (job.row.stage == engine::Stage::kRunning && monotonicMs() >= nextMs) {
      nextMs = monotonicMs() + kEveryMs;
      const auto usage = co_await call.state.engine.usage(job.row.id);
      if (usage) {
        const UsageSample now{.atMs = wallMs(), .usage = *usage};
        if (before.atMs == 0) before = sinceStart(job.row);
        json::Object metrics = metricsBetween(before, now);
        metrics["replica"] = replica;
        CAY_CO_TRY(co_await events.event("metric", json::serialize(metrics)));
        before = now;
      }
    }
    CAY_CO_TRY(co_await guard.pause());
  }
  co_return co_await events.end();
}

}  // namespace

json::Object metricsBetween(const UsageSample& earlier, const UsageSample& later) {
  const engine::Usage& usage = later.usage;
  const double ms = static_cast<double>(std::max<int64_t>(1, later.atMs - earlier.atMs));
  const auto bitsPerSecond = [&](uint64_t before, uint64_t after) {
    constexpr double kBitsAndMillis = 8 * 1000;
    return static_cast<uint64_t>(grown(before, after) * kBitsAndMillis / ms);
  };
  // Of what it may use: all of its processors are 100.
  const double cpus = std::max<double>(1, usage.milliCpus) / 1000;
  const double percent = 100 * grown(earlier.usage.cpuMs, usage.cpuMs) / ms / cpus;
  return {{"cpu_usage_pct", std::round(percent * 100) / 100},
          {"cpu_millicores", usage.milliCpus},
          {"memory_used_bytes", usage.memoryBytes},
          // Clients divide by it.
          {"memory_total_bytes", std::max<uint64_t>(1, usage.memoryLimit)},
          {"rx_bps", bitsPerSecond(earlier.usage.receivedBytes, usage.receivedBytes)},
          {"tx_bps", bitsPerSecond(earlier.usage.sentBytes, usage.sentBytes)},
          {"gpus", nullptr}};
}

net::Task<Result<>> streamMetrics(ApiCall& call) {
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  if (engine::isTerminal(job->row.stage)) {
    const ApiError over{
        .status = kOver, .message = "this job is over: it uses nothing any more", .field = {}};
    co_return co_await refuse(call, over);
  }
  net::EventStream events(call.response);
  CAY_CO_TRY(co_await events.begin(newHead(call)));
  if (call.head.method == "HEAD") co_return co_await events.end();
  StreamGuard guard(call.response, events, job->changed);
  guard.start(co_await boost::asio::this_coro::executor);
  auto result = co_await sendSamples(call, *job, events, guard);
  co_await guard.stop();
  co_return result;
}

}  // namespace cay::hub
