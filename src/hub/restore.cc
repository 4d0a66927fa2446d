#include "hub/restore.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "hub/job_start.h"

namespace cay::hub {
namespace {

using engine::JobSpec;
using engine::Stage;

// A job that runs goes on although its flavor has gone: its limits stand already. One that still
// waits would start without any.
Result<JobSpec> knownSpec(const JobRow& row, const engine::Engine& engine) {
  auto spec = fullSpecOf(row, engine);
  if (spec || row.stage == Stage::kScheduling) return spec;
  return jobSpecOf(row);
}

}  // namespace

net::Task<Result<>> restoreHub(HubState& state, Scheduler& scheduler) {
  CAY_CO_ASSIGN(Store::Snapshot snapshot, co_await state.store.load());
  state.callers.replace(snapshot.identities);
  state.jobs.restore(std::move(snapshot.live), snapshot.lastSeq);
  scheduler.restore(std::move(snapshot.schedules), wallMs());
  std::vector<JobSpec> known;
  for (const JobPtr& job : state.jobs.live()) {
    auto spec = knownSpec(job->row, state.engine);
    if (spec) {
      known.push_back(*std::move(spec));
      continue;
    }
    engine::Status lost;
    lost.stage = Stage::kError;
    lost.message = "cannot go on after a restart of the hub: " + spec.error().message;
    state.jobs.changed(job->row.id, lost);
  }
  co_return co_await state.engine.open(std::move(known), state.jobs);
}

}  // namespace cay::hub
