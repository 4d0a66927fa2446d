// An engine for tests: jobs move when the test says so, logs are in memory, and ports are those of
// this machine that the test names. On the loop's thread, the test's own calls included.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/flavors.h"
#include "net/event.h"

namespace cay::engine {

inline Flavors fourCpus() {
  return Flavors::ofMachine({.cpus = 4, .memoryBytes = uint64_t{16} << 30, .gpus = {}});
}

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(Flavors flavors = fourCpus()) : flavors_(std::move(flavors)) {}

  // What the test does to jobs.

  // Changes a job's status and tells the hub.
  void move(const std::string& id, const Status& status) {
    Job& job = *jobs_.at(id);
    job.status = status;
    if (watcher_ != nullptr) watcher_->changed(id, status);
    job.changed.notifyAll();
  }
  void start(const std::string& id) {
    Status status = jobs_.at(id)->status;
    status.stage = Stage::kRunning;
    status.serving = jobs_.at(id)->spec.kind != Kind::kPlain;
    status.startedAtMs = wallMs();
    move(id, status);
  }
  void finish(const std::string& id, Stage stage, std::string message = {}) {
    Status status = jobs_.at(id)->status;
    status.stage = stage;
    status.serving = false;
    status.message = std::move(message);
    status.finishedAtMs = wallMs();
    move(id, status);
  }
  void say(const std::string& id, std::string line) {
    Job& job = *jobs_.at(id);
    const int64_t last = job.lines.empty() ? 0 : job.lines.back().timeUs;
    job.lines.push_back({.timeUs = std::max(wallUs(), last + 1), .text = std::move(line)});
    job.changed.notifyAll();
  }
  void setUsage(const std::string& id, const Usage& usage) { jobs_.at(id)->usage = usage; }
  // Where a port of a job is really served: by a port of the loopback.
  void serveAt(const std::string& id, uint16_t port, uint16_t local) {
    jobs_.at(id)->ports[port] = local;
  }
  // The answer to the next submit().
  void refuseNext(Error error) { refusal_ = std::move(error); }
  // Whether a job goes on writing although it is over; not at first.
  void setLingering(const std::string& id, bool lingers) {
    jobs_.at(id)->lingers = lingers;
    jobs_.at(id)->changed.notifyAll();
  }
  // As if it had never heard of it.
  void lose(const std::string& id) { jobs_.erase(id); }

  [[nodiscard]] bool has(std::string_view id) const { return jobs_.contains(id); }
  [[nodiscard]] const JobSpec& spec(const std::string& id) const { return jobs_.at(id)->spec; }

  // Engine

  [[nodiscard]] std::string_view name() const override { return "fake"; }

  net::Task<Result<>> open(std::vector<JobSpec> known, Watcher& watcher) override {
    watcher_ = &watcher;
    for (const JobSpec& spec : known) {
      const auto found = jobs_.find(spec.id);
      if (found != jobs_.end()) {
        watcher.changed(spec.id, found->second->status);
      } else {
        Status lost;
        lost.stage = Stage::kError;
        lost.message = "the engine has no trace of this job";
        watcher.changed(spec.id, lost);
      }
    }
    std::erase_if(jobs_, [&](const auto& job) {
      return !isTerminal(job.second->status.stage) &&
             std::ranges::find(known, job.first, &JobSpec::id) == known.end();
    });
    co_return Result<>();
  }

  net::Task<Result<>> submit(JobSpec spec) override {
    if (refusal_) co_return std::unexpected(*std::exchange(refusal_, std::nullopt));
    auto job = std::make_shared<Job>();
    job->order = ++count_;
    job->spec = std::move(spec);
    const std::string id = job->spec.id;
    jobs_[id] = std::move(job);
    co_return Result<>();
  }

  [[nodiscard]] Result<Status> inspect(std::string_view id) const override {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) return unknown(id);
    return found->second->status;
  }

  [[nodiscard]] std::vector<std::string> list(const Pairs& labels) const override {
    std::vector<JobPtr> found;
    for (const auto& [id, job] : jobs_) {
      if (std::ranges::all_of(labels, [&](const auto& label) {
            return std::ranges::find(job->spec.labels, label) != job->spec.labels.end();
          })) {
        found.push_back(job);
      }
    }
    std::ranges::sort(found, {}, [](const JobPtr& job) { return job->order; });
    std::vector<std::string> ids;
    for (const JobPtr& job : found) ids.push_back(job->spec.id);
    return ids;
  }

  net::Task<Result<>> end(std::string id, Stage stage, std::string why) override {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) co_return unknown(id);
    if (!isTerminal(found->second->status.stage)) finish(id, stage, std::move(why));
    co_return Result<>();
  }

  net::Task<Result<std::unique_ptr<LogStream>>> logs(std::string id,
                                                     std::optional<uint64_t> tail) override {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) co_return unknown(id);
    const size_t lines = found->second->lines.size();
    const size_t from = tail ? lines - std::min<size_t>(*tail, lines) : 0;
    co_return std::make_unique<Lines>(found->second, from);
  }

  net::Task<Result<net::Stream>> dial(std::string id, uint16_t port) override {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) co_return unknown(id);
    if (isTerminal(found->second->status.stage)) {
      co_return fail(Code::kGone, "job " + id + " is over");
    }
    const auto local = found->second->ports.find(port);
    if (local == found->second->ports.end()) {
      co_return fail(Code::kUnreachable, "nothing listens on port " + std::to_string(port));
    }
    co_return co_await net::dialLoopback(local->second);
  }

  net::Task<Result<Usage>> usage(std::string id) override {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) co_return unknown(id);
    if (isTerminal(found->second->status.stage)) {
      co_return fail(Code::kGone, "job " + id + " is over");
    }
    co_return found->second->usage;
  }

  void relabel(std::string_view id, Pairs labels) override {
    const auto found = jobs_.find(id);
    if (found != jobs_.end()) found->second->spec.labels = std::move(labels);
  }

  net::Task<Result<>> forget(std::string id) override {
    const auto found = jobs_.find(id);
    if (found == jobs_.end()) co_return unknown(id);
    if (!isTerminal(found->second->status.stage)) {
      co_return fail(Code::kConflict, "job " + id + " is not over");
    }
    jobs_.erase(found);
    co_return Result<>();
  }

  [[nodiscard]] const Flavors& flavors() const override { return flavors_; }

  net::Task<> shutdown(Jobs jobs) override {
    for (const std::string& id : list({})) {
      if (jobs == Jobs::kEnd) (void)co_await end(id, Stage::kCanceled, "the hub is shut down");
    }
    watcher_ = nullptr;
  }

 private:
  struct Job {
    uint64_t order = 0;
    JobSpec spec;
    Status status;
    std::vector<LogEvent> lines;
    net::Event changed;  // more lines, or its end
    bool lingers = false;
    Usage usage;
    std::map<uint16_t, uint16_t> ports;
  };
  using JobPtr = std::shared_ptr<Job>;

  class Lines final : public LogStream {
   public:
    Lines(JobPtr job, size_t from) : job_(std::move(job)), at_(from) {}
    net::Task<Result<std::optional<LogEvent>>> next() override {
      if (at_ == job_->lines.size()) co_return std::nullopt;
      co_return job_->lines[at_++];
    }
    net::Task<bool> changed(Millis limit) override {
      const auto news = [&] {
        return at_ < job_->lines.size() || (isTerminal(job_->status.stage) && !job_->lingers);
      };
      if (!news()) (void)co_await job_->changed.wait(limit);
      co_return news();
    }

   private:
    JobPtr job_;
    size_t at_;
  };

  static std::unexpected<Error> unknown(std::string_view id) {
    return fail(Code::kNotFound, "no such job: " + quoted(id));
  }

  Flavors flavors_;
  Watcher* watcher_ = nullptr;
  std::map<std::string, JobPtr, std::less<>> jobs_;
  uint64_t count_ = 0;
  std::optional<Error> refusal_;
};

}  // namespace cay::engine
