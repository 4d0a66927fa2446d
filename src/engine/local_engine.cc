#include "engine/local_engine.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/front_end.h"
#include "engine/job_house.h"
#include "engine/job_logs.h"
#include "engine/local_job.h"
#include "engine/local_start.h"

namespace cay::engine {
namespace {

constexpr Millis kTick{500};
constexpr Millis kStartingPatience{5'000};
constexpr Millis kStep{10};
constexpr size_t kMostCommandBytes = 1 << 20;

bool hasAll(const Pairs& labels, const Pairs& wanted) {
  return std::ranges::all_of(
      wanted, [&](const auto& pair) { return std::ranges::find(labels, pair) != labels.end(); });
}

bool isName(std::string_view text) {
  return !text.empty() && !text.contains('=') && !text.contains('\0');
}

Result<> checkTexts(const JobSpec& spec) {
  size_t bytes = 0;
  for (const std::string& argument : spec.command) {
    if (argument.contains('\0')) return fail(Code::kInvalid, "the command has a zero byte");
    bytes += argument.size();
  }
  for (const Pairs* pairs : {&spec.env, &spec.secrets}) {
    for (const auto& [name, value] : *pairs) {
      if (!isName(name) || value.contains('\0')) {
        return fail(Code::kInvalid, "no variable can be called " + quoted(name));
      }
      bytes += name.size() + value.size();
    }
  }
  if (bytes > kMostCommandBytes) {
    return fail(Code::kInvalid, "command, environment and secrets are too long together");
  }
  return {};
}

class Logged final : public LoggedJob {
 public:
  explicit Logged(std::shared_ptr<LocalJob> job) : job_(std::move(job)) {}
  [[nodiscard]] int64_t startedAtMs() const override { return job_->status().startedAtMs; }
  [[nodiscard]] bool isQuiet() const override { return job_->isGone(); }

 private:
  std::shared_ptr<LocalJob> job_;
};

}  // namespace

LocalEngine::LocalEngine(boost::asio::io_context& io, LocalOptions options)
    : io_(io), options_(std::move(options)), house_(new JobHouse{.io = io_, .options = options_}) {
  house_->changed = [this](const LocalJob& job) { watcher_->changed(job.id(), job.status()); };
  house_->started = [this](const LocalJob& job) {
    house_->queue->started(job.id());
    admit();
  };
  house_->gone = [this](const LocalJob& job) {
    house_->queue->remove(job.id());
    admit();
  };
  house_->networkOf = [this](std::string_view id) -> const Fd* {
    const auto found = jobs_.find(id);
    return found == jobs_.end() ? nullptr : &found->second->networkSpace();
  };
}

LocalEngine::~LocalEngine() = default;

net::Task<Result<>> LocalEngine::open(std::vector<JobSpec> known, Watcher& watcher) {
  watcher_ = &watcher;
  CAY_CO_TRY(co_await house_->workers.run([this] { return makeFolders(options_); }));
  std::set<std::string> knownIds;
  for (const JobSpec& spec : known) knownIds.insert(spec.id);
  CAY_CO_TRY(readJobs());
  std::vector<NetworkId> inUse;
  for (const auto& [id, job] : jobs_) {
    const JobState& state = job->state();
    if (state.network && knownIds.contains(id) && !isTerminal(state.status.stage)) {
      inUse.push_back(*state.network);
    }
  }
  CAY_CO_TRY(co_await openHouse(*house_, std::move(inUse), [this] { onNetworksLost(); }));
  co_await recover(knownIds);
  for (const JobSpec& spec : known) {
    if (jobs_.contains(spec.id)) continue;
    Status lost;
    lost.stage = Stage::kError;
    lost.message = "the engine has no trace of this job";
    lost.finishedAtMs = wallMs();
    watcher_->changed(spec.id, lost);
  }
  admit();
  boost::asio::co_spawn(io_, keepTime(), boost::asio::detached);
  co_return Result<>();
}

Result<> LocalEngine::readJobs() {
  CAY_ASSIGN(const std::vector<JobFolder> folders, JobFolder::all(house_->jobs()));
  for (const JobFolder& folder : folders) {
    auto spec = folder.spec();
    auto state = folder.state();
    if (!spec || !state || spec->id != folder.id()) {
      log(Level::kError, "the record of a job is broken and is removed",
          {{"job", folder.id()}, {"error", spec ? "its state" : spec.error().message}});
      broken_.push_back(folder);
      continue;
    }
    lastNumber_ = std::max(lastNumber_, state->number);
    enter(std::make_shared<LocalJob>(*house_, folder, *std::move(spec), *std::move(state)));
  }
  return {};
}

net::Task<> LocalEngine::recover(std::set<std::string> known) {
  for (const sandbox::KeeperMark& stray : FrontEnd::unmarked(house_->jobs())) {
    co_await stray.kill();
  }
  for (const JobPtr& job : byAge()) {
    if (!known.contains(job->id()) && !isTerminal(job->state().status.stage)) {
      co_await removeStrange(job);
      continue;
    }
    if (known.contains(job->id())) house_->changed(*job);
    co_await recoverJob(job);
  }
  for (const JobFolder& folder : broken_) {
    co_await FrontEnd::killLeft(folder.path());
    if (const auto pooled = house_->registry->find(folder.id())) {
      house_->registry->retire(pooled, sandbox::Death::kKilled);
    }
    (void)folder.remove();
  }
  broken_.clear();
  for (const sandbox::PooledPtr& pooled : house_->registry->list()) {
    if (!jobs_.contains(pooled->record.id)) {
      house_->registry->retire(pooled, sandbox::Death::kKilled);
    }
  }
}

net::Task<> LocalEngine::recoverJob(JobPtr job) {
  const Status& status = job->state().status;
  const bool hasFolder = house_->registry->find(job->id()) != nullptr;
  if (isTerminal(status.stage)) {
    co_await job->sweep();
  } else if (status.stage == Stage::kScheduling && !hasFolder) {
    job->beginAgain();
    house_->queue->add(job->id(), job->spec().resources);
  } else {
    house_->queue->claim(job->id(), job->spec().resources);
    job->resume();
    co_await job->takenUp();
  }
}

net::Task<> LocalEngine::removeStrange(JobPtr job) {
  log(Level::kWarn, "a job that nobody knows is removed", {{"job", job->id()}});
  co_await job->sweep();
  jobs_.erase(job->id());
  (void)job->folder().remove();
}

std::vector<LocalEngine::JobPtr> LocalEngine::byAge() const {
  std::vector<JobPtr> out;
  for (const auto& [id, job] : jobs_) out.push_back(job);
  std::ranges::sort(out, {}, [](const JobPtr& job) { return job->state().number; });
  return out;
}

void LocalEngine::enter(const JobPtr& job) {
  jobs_.emplace(job->id(), job);
}

Result<LocalEngine::JobPtr> LocalEngine::find(std::string_view id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return fail(Code::kNotFound, "there is no job " + quoted(id));
  return found->second;
}

Result<> LocalEngine::check(JobSpec& spec) const {
  if (closing_) return fail(Code::kExhausted, "the engine is being stopped");
  if (!sandbox::isGivenId(spec.id)) return fail(Code::kInvalid, "no job can be called so");
  if (jobs_.contains(spec.id)) {
    return fail(Code::kConflict, "there is a job " + spec.id + " already");
  }
  if (!spec.flavor.empty()) {
    CAY_ASSIGN(const Flavor flavor, options_.flavors.find(spec.flavor));
    if (spec.resources == Resources()) spec.resources = flavor.resources;
  }
  if (spec.resources.diskBytes > 0 && options_.mode != isolation::Mode::kFull) {
    return fail(Code::kInvalid, "the disk of a job can be limited by root's hub alone");
  }
  if (!house_->queue->possible(spec.resources)) {
    return fail(Code::kInvalid, "this machine has less than the job needs");
  }
  if (spec.kind == Kind::kPlain && (spec.command.empty() || spec.command.front().empty())) {
    return fail(Code::kInvalid, "the job has no command");
  }
  if (spec.kind != Kind::kPlain && spec.server.token.empty()) {
    return fail(Code::kInvalid, "a server of sandboxes needs a token");
  }
  if (spec.kind == Kind::kPool && IdUnits::unitsFor(poolCapacity(spec)) > IdLease::kUnits) {
    return fail(Code::kInvalid, "there are not enough user ids for a pool of that capacity");
  }
  for (const VolumeRef& volume : spec.volumes) CAY_TRY(Volumes::check(volume));
  return checkTexts(spec);
}

net::Task<Result<>> LocalEngine::submit(JobSpec spec) {
  CAY_CO_TRY(check(spec));
  JobState state;
  state.number = ++lastNumber_;
  CAY_CO_ASSIGN(JobFolder folder, JobFolder::make(house_->jobs(), spec, state));
  const auto job = std::make_shared<LocalJob>(*house_, std::move(folder), std::move(spec), state);
  enter(job);
  house_->queue->add(job->id(), job->spec().resources);
  admit();
  co_return Result<>();
}

void LocalEngine::admit() {
  if (closing_) return;
  for (const std::string& id : house_->queue->admit()) jobs_.at(id)->begin();
}

Result<Status> LocalEngine::inspect(std::string_view id) const {
  CAY_ASSIGN(const JobPtr job, find(id));
  return job->status();
}

std::vector<std::string> LocalEngine::list(const Pairs& labels) const {
  std::vector<std::string> out;
  for (const JobPtr& job : byAge()) {
    if (hasAll(job->spec().labels, labels)) out.push_back(job->id());
  }
  return out;
}

net::Task<Result<>> LocalEngine::end(std::string id, Stage stage, std::string why) {
  CAY_CO_ASSIGN(const JobPtr job, find(id));
  if (!isTerminal(stage)) co_return fail(Code::kInvalid, "that is no way to end");
  co_await job->end(stage, std::move(why));
  co_return Result<>();
}

net::Task<Result<std::unique_ptr<LogStream>>> LocalEngine::logs(std::string id,
                                                                std::optional<uint64_t> tail) {
  CAY_CO_ASSIGN(const JobPtr job, find(id));
  auto lines =
      job->spec().kind == Kind::kPlain
          ? keptLines(job->folder().lines(), house_->registry->folder().sandboxesPath() + "/" + id +
                                                 "/execs/" + sandbox::kLinesFolder)
          : hostLines(job->folder().hostLog());
  co_return co_await openLog(std::make_unique<Logged>(job), std::move(lines), tail);
}

net::Task<Result<net::Stream>> LocalEngine::dial(std::string id, uint16_t port) {
  CAY_CO_ASSIGN(const JobPtr job, find(id));
  co_return co_await job->dial(port);
}

net::Task<Result<Usage>> LocalEngine::usage(std::string id) {
  CAY_CO_ASSIGN(const JobPtr job, find(id));
  co_return co_await job->usage();
}

void LocalEngine::relabel(std::string_view id, Pairs labels) {
  if (const auto job = find(id)) (*job)->relabel(std::move(labels));
}

net::Task<Result<>> LocalEngine::forget(std::string id) {
  CAY_CO_ASSIGN(const JobPtr job, find(id));
  if (!isTerminal(job->status().stage)) {
    co_return fail(Code::kConflict, "job " + id + " is not over");
  }
  co_await job->end(Stage::kCanceled, {});  // until nothing of it runs
  auto remove = [job] { return job->folder().remove(); };
  CAY_CO_TRY(co_await house_->workers.run(std::move(remove)));
  jobs_.erase(id);
  co_return Result<>();
}

void LocalEngine::onNetworksLost() {
  for (const auto& [id, job] : jobs_) {
    if (!job->networkSpace().valid()) continue;
    boost::asio::co_spawn(io_, job->end(Stage::kError, "the job's network was lost"),
                          boost::asio::detached);
  }
}

void LocalEngine::tellPlaces() {
  const auto waiting = house_->queue->waiting();
  std::vector<std::pair<JobPtr, std::string>> told;
  for (const Queue::Place& place : waiting) {
    told.emplace_back(jobs_.find(place.id)->second, "waiting: " + std::to_string(place.position) +
                                                        " of " + std::to_string(waiting.size()) +
                                                        " (" + std::string(place.lacking) + ")");
  }
  for (auto& [job, message] : told) job->setMessage(std::move(message));
}

void LocalEngine::endLate() {
  const int64_t now = wallMs();
  for (const JobPtr& job : byAge()) {
    job->tick(now);
    const int64_t deadline = job->spec().deadlineMs;
    if (job->status().stage != Stage::kScheduling || deadline == 0 || now < deadline) continue;
    boost::asio::co_spawn(io_, job->end(Stage::kError, "it could not start before its deadline"),
                          boost::asio::detached);
  }
}

net::Task<> LocalEngine::keepTime() {
  while (!closing_) {
    house_->registry->tick(monotonicMs());
    endLate();
    admit();
    tellPlaces();
    co_await net::sleepFor(kTick);
  }
}

net::Task<> LocalEngine::shutdown(Jobs jobs) {
  closing_ = true;
  if (!house_->registry) co_return;
  if (jobs == Jobs::kEnd) {
    for (const JobPtr& job : byAge()) {
      if (isTerminal(job->status().stage)) continue;
      boost::asio::co_spawn(io_, job->end(Stage::kCanceled, "the hub was stopped"),
                            boost::asio::detached);
    }
    for (const JobPtr& job : byAge()) co_await job->end(Stage::kCanceled, "the hub was stopped");
    co_await closeHouse(*house_);
    co_return;
  }
  // What is being started would be lost.
  const auto isStarting = [](const JobPtr& job) { return job->isStarting(); };
  const int64_t until = monotonicMs() + kStartingPatience.count();
  while (std::ranges::any_of(byAge(), isStarting) && monotonicMs() < until) {
    co_await net::sleepFor(kStep);
  }
  // With nobody to keep it for, nothing of ours stays in the machine.
  const auto isGone = [](const JobPtr& job) { return job->isGone(); };
  if (std::ranges::all_of(byAge(), isGone)) co_await closeHouse(*house_);
}

std::vector<std::string> LocalEngine::notes() const {
  return weaknesses(*house_);
}

}  // namespace cay::engine
