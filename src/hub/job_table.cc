#include "hub/job_table.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"

namespace cay::hub {
namespace {

using engine::Stage;

bool hasLabels(const JobRow& row, const engine::Pairs& labels) {
  return std::ranges::all_of(labels, [&](const auto& label) {
    return std::ranges::find(row.labels, label) != row.labels.end();
  });
}

bool matches(const JobRow& row, const JobFilter& filter) {
  const bool stage =
      filter.stages.empty() || std::ranges::find(filter.stages, row.stage) != filter.stages.end();
  return stage && row.ns == filter.ns && row.seq < filter.beforeSeq &&
         hasLabels(row, filter.labels);
}

// What may be in the store alone: ended jobs. Empty if none of them is asked for.
std::vector<Stage> endedStages(const std::vector<Stage>& wanted) {
  std::vector<Stage> ended;
  for (const Stage stage : {Stage::kCompleted, Stage::kError, Stage::kCanceled}) {
    if (wanted.empty() || std::ranges::find(wanted, stage) != wanted.end()) ended.push_back(stage);
  }
  return ended;
}

void apply(const engine::Status& status, Job& job) {
  JobRow& row = job.row;
  row.stage = status.stage;
  row.message = status.message;
  row.attempt = status.attempt;
  row.notes = status.notes;
  if (!status.image.empty()) row.image = status.image;
  if (row.startedMs == 0) row.startedMs = status.startedAtMs;
  if (engine::isTerminal(row.stage)) {
    row.finishedMs = status.finishedAtMs != 0 ? status.finishedAtMs : wallMs();
  }
  job.serving = status.serving && row.stage == Stage::kRunning;
}

}  // namespace

void JobTable::restore(std::vector<JobRow> live, int64_t lastSeq) {
  lastSeq_ = lastSeq;
  for (JobRow& row : live) {
    auto job = std::make_shared<Job>();
    job->row = std::move(row);
    jobs_[job->row.id] = {.job = job};
  }
}

net::Task<Result<JobPtr>> JobTable::add(JobRow row) {
  auto job = std::make_shared<Job>();
  job->row = std::move(row);
  job->row.seq = ++lastSeq_;
  CAY_CO_TRY(co_await store_.insert(job->row));
  jobs_[job->row.id] = {.job = job};
  co_return job;
}

void JobTable::changed(const std::string& id, const engine::Status& status) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    log(Level::kWarn, "news of an unknown job", {{"job", id}});
    return;
  }
  Job& job = *found->second.job;
  const Stage before = job.row.stage;
  const bool stays = status.stage == before && !engine::isTerminal(before);
  if (!stays && !engine::mayFollow(before, status.stage)) {
    if (status.stage != before) {
      log(Level::kError, "a job cannot go back",
          {{"job", id},
           {"from", engine::stageName(before)},
           {"to", engine::stageName(status.stage)}});
    }
    return;
  }
  apply(status, job);
  touch(id);
  job.changed.notifyAll();
}

net::Task<Result<>> JobTable::relabel(JobPtr job, engine::Pairs labels) {
  JobRow wanted = job->row;
  wanted.labels = labels;
  CAY_CO_TRY(co_await store_.update(std::move(wanted)));
  job->row.labels = std::move(labels);
  // What changed meanwhile has been stored with older labels, or older than that.
  if (jobs_.contains(job->row.id)) touch(job->row.id);
  job->changed.notifyAll();
  co_return Result<>();
}

net::Task<Result<>> JobTable::expose(JobPtr job, Expose ports) {
  JobRow wanted = job->row;
  wanted.ports = ports.all;
  wanted.publicPorts = ports.open;
  CAY_CO_TRY(co_await store_.update(std::move(wanted)));
  job->row.ports = std::move(ports.all);
  job->row.publicPorts = std::move(ports.open);
  if (jobs_.contains(job->row.id)) touch(job->row.id);
  job->changed.notifyAll();
  co_return Result<>();
}

void JobTable::reached(Job& job) {
  if (std::exchange(job.row.healthSeen, true)) return;
  if (jobs_.contains(job.row.id)) touch(job.row.id);
}

void JobTable::touch(const std::string& id) {
  Entry& entry = jobs_.at(id);
  entry.dirty = true;
  if (std::exchange(entry.writing, true)) return;
  ++unsettled_;
  boost::asio::co_spawn(io_, keepStored(id), boost::asio::detached);
}

// One at a time for each job, so that an older row never comes after a newer one.
net::Task<> JobTable::keepStored(std::string id) {
  while (true) {
    Entry& entry = jobs_.at(id);
    if (!std::exchange(entry.dirty, false)) break;
    const auto stored = co_await store_.update(entry.job->row);
    if (stored) continue;
    if (stored.error().code == Code::kNotFound) break;  // it was forgotten meanwhile
    log(Level::kWarn, "the state of a job could not be stored",
        {{"job", id}, {"error", stored.error().message}});
    jobs_.at(id).dirty = true;
    co_await net::sleepFor(kRetry);
  }
  Entry& entry = jobs_.at(id);
  entry.writing = false;
  --unsettled_;
  if (engine::isTerminal(entry.job->row.stage)) keepAsRecent(id);
  wrote_.notifyAll();
}

void JobTable::keepAsRecent(const std::string& id) {
  if (std::ranges::find(recent_, id) == recent_.end()) recent_.push_back(id);
  for (size_t i = 0; recent_.size() > kRecent && i < recent_.size();) {
    const auto oldest = jobs_.find(recent_[i]);
    if (oldest != jobs_.end() && oldest->second.writing) {
      ++i;
      continue;
    }
    if (oldest != jobs_.end()) jobs_.erase(oldest);
    recent_.erase(recent_.begin() + static_cast<ptrdiff_t>(i));
  }
}

JobPtr JobTable::find(std::string_view id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second.job;
}

net::Task<Result<JobPtr>> JobTable::get(std::string id) {
  if (JobPtr here = find(id)) co_return here;
  CAY_CO_ASSIGN(JobRow row, co_await store_.job(id));
  // One that is not over is always here, unless it has been added while the store was asked.
  if (JobPtr here = find(id)) co_return here;
  auto job = std::make_shared<Job>();
  job->row = std::move(row);
  co_return job;
}

net::Task<Result<std::vector<JobRow>>> JobTable::list(JobFilter filter) {
  // First what is here: a job that ends while the store is asked is then found twice, never not
  // at all.
  std::vector<JobRow> rows;
  std::set<std::string> seen;
  for (const auto& [id, entry] : jobs_) {
    const bool inStore = engine::isTerminal(entry.job->row.stage) && !entry.writing;
    if (inStore) continue;
    seen.insert(id);
    if (matches(entry.job->row, filter)) rows.push_back(entry.job->row);
  }
  const uint32_t limit = filter.limit;
  std::vector<Stage> ended = endedStages(filter.stages);
  if (!ended.empty()) {
    filter.stages = std::move(ended);
    CAY_CO_ASSIGN(std::vector<JobRow> stored, co_await store_.list(std::move(filter)));
    for (JobRow& row : stored) {
      if (!seen.contains(row.id)) rows.push_back(std::move(row));
    }
  }
  std::ranges::sort(rows, std::greater<>(), &JobRow::seq);
  if (rows.size() > limit) rows.resize(limit);
  co_return rows;
}

std::vector<JobPtr> JobTable::live() const {
  std::vector<JobPtr> jobs;
  for (const auto& [id, entry] : jobs_) {
    if (!engine::isTerminal(entry.job->row.stage)) jobs.push_back(entry.job);
  }
  std::ranges::sort(jobs, {}, [](const JobPtr& job) { return job->row.seq; });
  return jobs;
}

net::Task<Result<std::vector<std::string>>> JobTable::forgetEnded(int64_t beforeMs, uint64_t keep) {
  CAY_CO_ASSIGN(std::vector<std::string> ids, co_await store_.forgetEnded(beforeMs, keep));
  for (const std::string& id : ids) {
    const auto found = jobs_.find(id);
    if (found == jobs_.end() || found->second.writing) continue;
    jobs_.erase(found);
    std::erase(recent_, id);
  }
  co_return ids;
}

net::Task<bool> JobTable::settled(Millis limit) {
  const int64_t end = monotonicMs() + limit.count();
  while (unsettled_ > 0) {
    const int64_t left = end - monotonicMs();
    if (left <= 0 || !co_await wrote_.wait(Millis(left))) co_return unsettled_ == 0;
  }
  co_return true;
}

}  // namespace cay::hub
