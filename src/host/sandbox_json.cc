#include "host/sandbox_json.h"

#include <algorithm>

#include "base/clock.h"
#include "host/wall_table.h"

namespace cay::host {
namespace {

constexpr uint64_t kMiB = 1 << 20;

json::Value limit(uint64_t value) {
  return value == 0 ? json::Value(nullptr) : json::Value(value);
}

json::Object limitsObject(const isolation::Limits& limits) {
  json::Object out;
  out["memory_mb"] = limit(limits.memoryBytes / kMiB);
  out["pids"] = limit(limits.pids);
  out["cpus"] = limits.milliCpus == 0 ? json::Value(nullptr) : json::Value(limits.milliCpus / 1e3);
  out["disk_mb"] = limit(limits.diskBytes / kMiB);
  return out;
}

}  // namespace

json::Object summaryOf(sandbox::Pooled& pooled) {
  const sandbox::PoolRecord& record = pooled.record;
  const size_t running = pooled.sandbox.running();
  json::Object labels;
  for (const auto& [name, value] : record.spec->labels) labels[name] = value;
  json::Object out;
  out["id"] = record.id;
  out["state"] = running > 0 ? "running" : "idle";
  out["created_at_ms"] = record.createdAtMs;
  // Two clocks: the difference may come out a millisecond before the beginning.
  out["last_activity_ms"] =
      std::max(record.createdAtMs, wallMs() - pooled.activity.quietMs(monotonicMs(), running));
  out["labels"] = std::move(labels);
  out["limits"] = limitsObject(record.spec->limits);
  out["cause"] = nullptr;
  return out;
}

json::Object detailsOf(sandbox::Pooled& pooled, const isolation::Walls& walls,
                       const SandboxUsage& usage) {
  json::Object out = summaryOf(pooled);
  out["walls"] = wallsObject(walls);
  out["usage"] = json::Object{
      {"cpu_ms", usage.group.cpuMs},
      {"memory_bytes", usage.group.memoryBytes},
      {"pids", usage.group.pids},
      {"disk_bytes", usage.diskBytes ? json::Value(*usage.diskBytes) : json::Value(nullptr)}};
  return out;
}

}  // namespace cay::host
