#include "hub/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/cron.h"
#include "base/log.h"
#include "base/text.h"
#include "host/body_fields.h"
#include "hub/job_start.h"

namespace cay::hub {
namespace {

// The wall clock may be set while we sleep.
constexpr int64_t kLongestSleepMs = 10'000;

std::unexpected<Error> unknown(std::string_view id) {
  return fail(Code::kNotFound, "no such scheduled job: " + quoted(id));
}

// When it is due; 0 while it is suspended.
Result<int64_t> dueOf(const ScheduleRow& row, int64_t nowMs) {
  CAY_ASSIGN(const int64_t next, nextRun(row.cron, nowMs));
  return row.suspended ? 0 : next;
}

// Rights may have been taken away since it was made, or be asked for by newer rules.
Result<> mayStillRun(const Callers& callers, const ScheduleRow& row) {
  CAY_ASSIGN(const Caller who, callers.rightsOf(row.principal));
  if (!who.may(row.ns)) {
    return fail(Code::kDenied, quoted(who.name) + ", who made this schedule, has no right to the " +
                                   "namespace " + quoted(row.ns) + " any more");
  }
  CAY_ASSIGN(const json::Object body, host::bodyObject(row.spec));
  return mayMount(who, body);
}

}  // namespace

Result<int64_t> nextRun(const std::string& schedule, int64_t afterMs) {
  CAY_ASSIGN(const Cron cron, Cron::parse(schedule));
  return cron.next(afterMs);
}

void Scheduler::restore(std::vector<ScheduleRow> rows, int64_t nowMs) {
  for (ScheduleRow& row : rows) {
    const auto due = dueOf(row, nowMs);
    if (!due) {
      log(Level::kError, "a stored schedule cannot be read",
          {{"schedule", row.id}, {"error", due.error().message}});
    }
    row.nextMs = due.value_or(0);
    const std::string id = row.id;
    entries_[id] = {.row = std::move(row)};
  }
  changed_.notifyAll();
}

net::Task<Result<ScheduleRow>> Scheduler::add(ScheduleRow row) {
  CAY_CO_ASSIGN(row.nextMs, dueOf(row, wallMs()));
  CAY_CO_TRY(co_await state_.store.put(row));
  entries_[row.id] = {.row = row};
  changed_.notifyAll();
  co_return row;
}

Result<ScheduleRow> Scheduler::find(std::string_view ns, std::string_view id) const {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.row.ns != ns) return unknown(id);
  return found->second.row;
}

std::vector<ScheduleRow> Scheduler::list(std::string_view ns) const {
  std::vector<ScheduleRow> rows;
  for (const auto& [id, entry] : entries_) {
    if (entry.row.ns == ns) rows.push_back(entry.row);
  }
  std::ranges::sort(rows, {}, &ScheduleRow::createdMs);
  return rows;
}

net::Task<Result<ScheduleRow>> Scheduler::change(std::string id, Change change) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) co_return unknown(id);
  ScheduleRow wanted = found->second.row;
  change(wanted);
  CAY_CO_ASSIGN(wanted.nextMs, dueOf(wanted, wallMs()));
  CAY_CO_TRY(co_await state_.store.put(wanted));
  const auto now = entries_.find(id);
  if (now == entries_.end()) co_return unknown(id);
  // A run, or another change, may have come between.
  ScheduleRow& row = now->second.row;
  change(row);
  row.nextMs = wanted.nextMs;
  changed_.notifyAll();
  const ScheduleRow result = row;
  if (row != wanted) (void)co_await state_.store.put(result);
  co_return result;
}

net::Task<Result<>> Scheduler::remove(std::string id) {
  auto node = entries_.extract(id);
  // Taken out first, so that nothing is stored of it after the store has forgotten it.
  if (node.empty()) co_return unknown(id);
  auto removed = co_await state_.store.removeSchedule(id);
  if (!removed && removed.error().code != Code::kNotFound) {
    entries_.insert(std::move(node));
    co_return removed;
  }
  co_return Result<>();
}

bool Scheduler::mayRun(const Entry& entry) const {
  if (entry.row.concurrent) return true;
  return !entry.starting && std::ranges::none_of(state_.jobs.live(), [&](const JobPtr& job) {
    return job->row.schedule == entry.row.id;
  });
}

net::Task<Result<JobPtr>> Scheduler::run(std::string id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) co_return unknown(id);
  Entry& entry = found->second;
  if (!mayRun(entry)) {
    co_return fail(Code::kConflict,
                   "a job of this schedule is not over yet, and it allows one at a time");
  }
  CAY_CO_TRY(mayStillRun(state_.callers, entry.row));
  CAY_CO_ASSIGN(JobWish wish, wishAgain(entry.row.spec, entry.row.secrets));
  JobStart start{.ns = entry.row.ns,
                 .wish = std::move(wish),
                 .initiator = {.type = "scheduled-job", .id = id, .name = {}},
                 .schedule = id};
  entry.starting = true;
  auto job = co_await startJob(state_, std::move(start));
  const auto now = entries_.find(id);
  if (now == entries_.end()) co_return job;
  now->second.starting = false;
  if (!job) co_return job;
  ScheduleRow& row = now->second.row;
  row.lastJob = (*job)->row.id;
  row.lastMs = (*job)->row.createdMs;
  const auto stored = co_await state_.store.put(row);
  if (!stored) {
    log(Level::kWarn, "the last run of a schedule could not be stored",
        {{"schedule", id}, {"error", stored.error().message}});
  }
  co_return job;
}

net::Task<> Scheduler::runDue(int64_t nowMs) {
  std::vector<std::string> due;
  for (auto& [id, entry] : entries_) {
    if (entry.row.nextMs == 0 || entry.row.nextMs > nowMs) continue;
    entry.row.nextMs = dueOf(entry.row, nowMs).value_or(0);
    due.push_back(id);
  }
  for (std::string& id : due) {
    const auto job = co_await run(id);
    if (!job) {
      log(Level::kWarn, "a scheduled job did not start",
          {{"schedule", id}, {"error", job.error().message}});
    }
  }
}

net::Task<> Scheduler::follow() {
  while (true) {
    int64_t sleep = kLongestSleepMs;
    for (const auto& [id, entry] : entries_) {
      if (entry.row.nextMs != 0) sleep = std::min(sleep, entry.row.nextMs - wallMs());
    }
    if (sleep > 0) (void)co_await changed_.wait(Millis(sleep));
    co_await runDue(wallMs());
  }
}

}  // namespace cay::hub
