#include "engine/local_job.h"

#include <fcntl.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "engine/front_end.h"
#include "engine/local_start.h"
#include "engine/usage.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr mode_t kForAll = 0644;
constexpr int64_t kMillis = 1000;
constexpr std::string_view kSpace = "space:";
constexpr char kHalfStarted[] = "the hub was restarted while this job was being started";
// Between the end of a job's time and that of its walls: who ends it first says why.
constexpr int64_t kGraceMs = 5'000;
constexpr off_t kMostHostLog = 8 << 20;

std::string timedOut(const JobSpec& spec) {
  return "timed out after " + std::to_string(spec.timeoutMs / kMillis) + " s";
}

}  // namespace

LocalJob::LocalJob(JobHouse& house, JobFolder folder, JobSpec spec, JobState state)
    : house_(house),
      folder_(std::move(folder)),
      spec_(std::move(spec)),
      state_(std::move(state)),
      told_(state_.status),
      concluded_(isTerminal(state_.status.stage)),
      ground_{.house = house_,
              .spec = spec_,
              .folder = folder_,
              .network = network_,
              .state = state_,
              .pooled = nullptr} {}

void LocalJob::begin() {
  begun_ = true;
  boost::asio::co_spawn(house_.io, run(shared_from_this(), From::kBeginning),
                        boost::asio::detached);
}

void LocalJob::beginAgain() {
  state_.idBlock.reset();
  state_.gpus.clear();
  state_.status.startedAtMs = 0;
  giveNetworkBack();
}

void LocalJob::resume() {
  begun_ = true;
  boost::asio::co_spawn(house_.io, run(shared_from_this(), From::kMiddle), boost::asio::detached);
}

net::Task<> LocalJob::sweep() {
  concluded_ = true;
  ground_.pooled = house_.registry->find(id());
  if (ground_.pooled) {
    body_ = makeBody(ground_);
    co_await body_->stop();
  }
  co_await FrontEnd::killLeft(folder_.path());
  gone_ = true;
}

net::Task<> LocalJob::run(Self self, From from) {
  static const std::vector<Step> kBeginning = {
      {.name = "image", .act = &LocalJob::haveImage},
      {.name = "volumes", .act = &LocalJob::haveVolumes},
      {.name = "gpus", .act = &LocalJob::haveGpus},
      {.name = "network", .act = &LocalJob::haveNetwork},
      {.name = "folder", .act = &LocalJob::haveFolder},
      {.name = "start", .act = &LocalJob::startBody},
  };
  static const std::vector<Step> kMiddle = {
      {.name = "folder", .act = &LocalJob::findFolder},
      {.name = "gpus", .act = &LocalJob::findGpus},
      {.name = "network", .act = &LocalJob::findNetwork},
      {.name = "start", .act = &LocalJob::findBody},
  };
  Result<> lived = co_await self->take(from == From::kBeginning ? kBeginning : kMiddle);
  if (lived) lived = co_await self->live();
  if (!lived) {
    const bool half = from == From::kMiddle && self->state_.status.stage == Stage::kScheduling;
    self->conclude(Stage::kError, half ? kHalfStarted : lived.error().message);
  }
  co_await self->putDown();
  self->leave();
}

void LocalJob::leave() {
  gone_ = true;
  tell();
  house_.gone(*this);
  changed_.notifyAll();
}

net::Task<Result<>> LocalJob::take(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    if (concluded_) co_return Result<>();
    auto taken = co_await (this->*step.act)();
    if (!taken) co_return std::unexpected(std::move(taken).error().wrap(step.name));
  }
  if (!concluded_) noteRunning();
  taken_ = true;
  changed_.notifyAll();
  co_return Result<>();
}

net::Task<> LocalJob::takenUp() {
  const Self self = shared_from_this();
  while (!taken_ && !gone_) co_await changed_.wait();
}

net::Task<Result<>> LocalJob::live() {
  static const std::vector<Step> kAgain = {{.name = "volumes", .act = &LocalJob::haveVolumes},
                                           {.name = "gpus", .act = &LocalJob::haveGpus},
                                           {.name = "folder", .act = &LocalJob::haveFolder},
                                           {.name = "start", .act = &LocalJob::startBody}};
  while (!concluded_) {
    Outcome outcome = co_await body_->ended();
    if (concluded_) break;
    state_.status.exitCode = body_->exitCode();
    const bool again = spec_.kind == Kind::kPlain && outcome.stage == Stage::kError &&
                       state_.status.attempt < spec_.attempts;
    const bool late =
        spec_.timeoutMs > 0 && wallMs() - state_.status.startedAtMs >= spec_.timeoutMs;
    if (!again || late) {
      conclude(outcome.stage, std::move(outcome.message));
      break;
    }
    ++state_.status.attempt;
    state_.status.message = "attempt " + std::to_string(state_.status.attempt) + " of " +
                            std::to_string(spec_.attempts) + ", after: " + outcome.message;
    state_.status.exitCode.reset();
    co_await body_->stop();
    if (concluded_) break;
    CAY_CO_TRY(co_await take(kAgain));
  }
  co_return Result<>();
}

net::Task<> LocalJob::putDown() {
  if (body_) co_await body_->stop();
  giveIdsBack();
  giveGpusBack();
  giveNetworkBack();
}

void LocalJob::giveNetworkBack() {
  if (!state_.network) return;
  house_.networks->leave(id());
  network_ = {};
  house_.networks->giveBack(*state_.network);
  state_.network.reset();
  save();
}

net::Task<Result<>> LocalJob::haveImage() {
  const auto resolve = [this] { return house_.images->resolve(spec_.image); };
  auto found = co_await house_.workers.run(resolve);
  if (found) co_return Result<>();
  if (found.error().code != Code::kNotFound) co_return std::unexpected(std::move(found).error());
  if (spec_.image.starts_with(kSpace)) {
    co_return fail(Code::kNotFound,
                   "the image of a Space cannot be brought here: " + imageHelp(spec_.image));
  }
  setMessage("bringing the image " + spec_.image);
  pull_ = house_.pulls->begin(spec_.image);
  while (!concluded_ && !pull_->result) co_await pull_->changed.wait();
  if (concluded_) co_return Result<>();
  co_return *pull_->result;
}

net::Task<Result<>> LocalJob::haveVolumes() {
  using Binds = std::vector<isolation::Bind>;
  const auto resolve = [this]() -> Result<Binds> {
    Binds binds;
    for (const VolumeRef& volume : spec_.volumes) {
      // Of a sandbox, its server is us.
      if (spec_.kind != Kind::kPlain && Volumes::isServer(volume)) continue;
      CAY_ASSIGN(binds.emplace_back(), house_.volumes->resolve(volume));
    }
    return binds;
  };
  CAY_CO_ASSIGN(binds_, co_await house_.workers.run(resolve));
  co_return Result<>();
}

net::Task<Result<>> LocalJob::haveGpus() {
  if (spec_.resources.gpus == 0) co_return Result<>();
  if (state_.gpus.empty()) {
    auto taken = house_.gpus->take(spec_.resources.gpus);
    if (!taken) co_return fail(Code::kExhausted, "there are not so many GPUs free");
    state_.gpus = *std::move(taken);
    CAY_CO_TRY(folder_.save(state_));
  }
  const auto find = [this] { return gpuFiles(house_.options.gpuPlaces, state_.gpus); };
  CAY_CO_ASSIGN(GpuFiles files, co_await house_.workers.run(find));
  devices_ = std::move(files.devices);
  // Before the volumes: where one is mounted over them, nothing of ours is to be put into it.
  binds_.insert(binds_.begin(), files.binds.begin(), files.binds.end());
  co_return Result<>();
}

net::Task<Result<>> LocalJob::findGpus() {
  if (house_.gpus->claim(state_.gpus)) co_return Result<>();
  state_.gpus.clear();
  co_return fail(Code::kGone, "the job's GPUs are not here any more");
}

void LocalJob::giveGpusBack() {
  house_.gpus->release(state_.gpus);
  state_.gpus.clear();
}

net::Task<Result<>> LocalJob::haveNetwork() {
  CAY_CO_ASSIGN(network_, co_await house_.networks->take(spec_.group));
  state_.network = network_.id;
  CAY_CO_TRY(folder_.save(state_));
  co_return writeEtc();
}

net::Task<Result<>> LocalJob::findNetwork() {
  if (!state_.network) co_return fail(Code::kGone, "the job's network is not known");
  auto network = co_await house_.networks->adopt(*state_.network);
  if (!network) co_return fail(Code::kGone, "the job's network was lost");
  network_ = *std::move(network);
  co_return house_.networks->join(network_, spec_, folder_.hosts());
}

Result<> LocalJob::writeEtc() {
  CAY_TRY(house_.networks->join(network_, spec_, folder_.hosts()));
  CAY_ASSIGN(const Fd file, sys::openAt(AT_FDCWD, folder_.resolvConf().c_str(),
                                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, kForAll));
  CAY_TRY(sys::chmodFd(file.get(), kForAll));
  return sys::writeAll(file.get(), house_.networks->resolvConf());
}

Result<> LocalJob::haveIds() {
  if (spec_.kind != Kind::kPool || !house_.lease) return {};
  const auto first = house_.units.take(IdUnits::unitsFor(poolCapacity(spec_)));
  if (!first) return fail(Code::kExhausted, "the pools of this hub have all user ids");
  state_.idBlock = first;
  return folder_.save(state_);
}

Result<> LocalJob::findIds() {
  if (!state_.idBlock) return {};
  if (house_.units.claim(*state_.idBlock, IdUnits::unitsFor(poolCapacity(spec_)))) return {};
  state_.idBlock.reset();
  return fail(Code::kConflict, "another pool has its user ids");
}

void LocalJob::giveIdsBack() {
  if (!state_.idBlock) return;
  house_.units.release(*state_.idBlock, IdUnits::unitsFor(poolCapacity(spec_)));
  state_.idBlock.reset();
}

net::Task<Result<>> LocalJob::haveFolder() {
  CAY_CO_TRY(haveIds());
  sandbox::Registry::CreateRequest request;
  request.id = id();
  request.spec.limits = {.memoryBytes = spec_.resources.memoryBytes,
                         .pids = spec_.resources.pids,
                         .milliCpus = spec_.resources.milliCpus,
                         .diskBytes = spec_.resources.diskBytes};
  request.spec.network = isolation::Network::kGiven;
  request.spec.image = spec_.image;
  request.spec.binds = binds_;
  request.spec.devices = devices_;
  for (const auto& [source, at] : {std::pair(folder_.hosts(), "/etc/hosts"),
                                   std::pair(folder_.resolvConf(), "/etc/resolv.conf")}) {
    request.spec.binds.push_back({.source = source, .at = at, .readOnly = true, .isFile = true});
  }
  const int64_t left = ground_.timeLeftMs();
  request.spec.lifetimeMs = left == 0 ? 0 : left + kGraceMs;
  request.spec.stays = true;
  CAY_CO_ASSIGN(sandbox::Registry::Created created,
                co_await house_.registry->create(std::move(request)));
  if (created.sandboxes.empty()) co_return fail(Code::kExhausted, "there is no place for it");
  ground_.pooled = created.sandboxes.front();
  body_ = makeBody(ground_);
  const layers::Image& image = *ground_.pooled->image;
  state_.status.image = imageText(image, spec_.image);
  state_.status.notes = weaknesses(house_);
  if (!image.config.user.empty() && image.config.user != "root" && image.config.user != "0") {
    state_.status.notes.push_back("the image's user '" + image.config.user +
                                  "' is not used: commands run as root inside");
  }
  co_return Result<>();
}

net::Task<Result<>> LocalJob::findFolder() {
  ground_.pooled = house_.registry->find(id());
  if (!ground_.pooled) co_return fail(Code::kGone, "the job's folder is not there any more");
  body_ = makeBody(ground_);
  co_return findIds();
}

net::Task<Result<>> LocalJob::startBody() {
  if (state_.status.startedAtMs == 0) {
    state_.status.startedAtMs = wallMs();
    save();
  }
  co_return co_await body_->start();
}

net::Task<Result<>> LocalJob::findBody() {
  co_return body_->adopt();
}

void LocalJob::noteRunning() {
  if (state_.status.stage == Stage::kScheduling) state_.status.message.clear();
  state_.status.stage = Stage::kRunning;
  state_.status.serving = body_->serves();
  save();
  tell();
  house_.started(*this);
}

void LocalJob::conclude(Stage stage, std::string message) {
  if (concluded_) return;
  concluded_ = true;
  state_.status.stage = stage;
  state_.status.message = std::move(message);
  state_.status.serving = false;
  state_.status.finishedAtMs = wallMs();
  save();
}

void LocalJob::save() {
  // The job goes on: it is the next start that would not know.
  if (auto saved = folder_.save(state_); !saved) {
    log(Level::kError, "the state of a job could not be saved",
        {{"job", id()}, {"error", saved.error().message}});
  }
}

void LocalJob::tell() {
  // A step that was under way at the end may still have found something out.
  if (told_ == state_.status || isTerminal(told_.stage)) return;
  told_ = state_.status;
  house_.changed(*this);
  changed_.notifyAll();
}

void LocalJob::setMessage(std::string message) {
  if (concluded_ || state_.status.stage != Stage::kScheduling) return;
  state_.status.message = std::move(message);
  tell();
}

net::Task<> LocalJob::end(Stage stage, std::string why) {
  const Self self = shared_from_this();
  if (!concluded_) {
    conclude(stage, std::move(why));
    tell();
    if (!begun_) leave();
    if (pull_) pull_->changed.notifyAll();
    if (body_) body_->interrupt();
  }
  while (!gone_) co_await changed_.wait();
}

void LocalJob::relabel(Pairs labels) {
  spec_.labels = std::move(labels);
  if (auto saved = folder_.save(spec_); !saved) {
    log(Level::kError, "the labels of a job could not be saved",
        {{"job", id()}, {"error", saved.error().message}});
  }
}

net::Task<Result<net::Stream>> LocalJob::dial(uint16_t port) {
  const Self self = shared_from_this();
  if (concluded_) co_return fail(Code::kGone, "the job is over");
  if (told_.stage != Stage::kRunning) co_return fail(Code::kUnreachable, "it does not run yet");
  if (port == kSandboxPort && spec_.kind != Kind::kPlain) co_return co_await body_->dialServer();
  co_return co_await house_.networks->dial(network_.id, port);
}

net::Task<Result<Usage>> LocalJob::usage() {
  const Self self = shared_from_this();
  if (concluded_) co_return fail(Code::kGone, "the job is over");
  if (!ground_.pooled || !network_.space.valid()) {
    co_return fail(Code::kUnreachable, "it does not run yet");
  }
  co_return co_await usageOf(ground_);
}

// Its writer appends, so it goes on at the new end.
void LocalJob::trimHostLog() const {
  const auto file = sys::openAt(AT_FDCWD, folder_.hostLog().c_str(), O_WRONLY | O_NOFOLLOW);
  const auto info =
      file ? sys::statFd(file->get()) : Result<sys::Stat>(std::unexpected(file.error()));
  if (info && info->st_size > kMostHostLog) (void)sys::truncateFd(file->get(), 0);
}

void LocalJob::tick(int64_t nowMs) {
  if (concluded_ || state_.status.stage != Stage::kRunning || spec_.kind == Kind::kPlain) return;
  trimHostLog();
  if (spec_.timeoutMs == 0 || nowMs - state_.status.startedAtMs < spec_.timeoutMs) return;
  boost::asio::co_spawn(house_.io, end(Stage::kError, timedOut(spec_)), boost::asio::detached);
}

}  // namespace cay::engine
