// One sandbox behind walls that somebody else has raised, and whose keeper was given to us. We
// serve it and never make a keeper: when that has ended, the sandbox is over.
#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "host/inside.h"
#include "host/one_sandbox.h"
#include "net/event.h"
#include "sandbox/paths.h"
#include "sandbox/pool_record.h"
#include "sys/file.h"
#include "sys/packet.h"

namespace cay::host {
namespace {

constexpr int64_t kGivenPatienceMs = 30'000;  // for the keeper to be given to us
constexpr Millis kSettlePatience{10'000};     // for it to tell what it holds
constexpr int kGreetingPatienceMs = 2'000;    // for one that has let go of us
constexpr char kLock[] = "front.lock";        // held by the host that the keeper was given to
constexpr Millis kFirstStep{1};               // between two looks for it
constexpr Millis kLastStep{50};

std::unexpected<Error> isOver() {
  return fail(Code::kGone, "the sandbox's first process has ended");
}

class Attached final : public OneSandbox {
 public:
  Attached(boost::asio::io_context& io, net::WorkerPool& workers, const Config& config,
           std::function<void()> changed)
      : OneSandbox(io, workers, config, {.env = config.attached->env, .cwd = config.attached->cwd}),
        what_(*config.attached),
        changed_(std::move(changed)) {}

  net::Task<Result<>> start() override {
    const sandbox::Activity::InUse starting(activity_, monotonicMs);  // nobody can use it yet
    CAY_CO_TRY(openFolder());
    CAY_CO_TRY(co_await untilGiven());
    sandbox::Sandbox::Options options;
    options.folder = folder();
    options.shape = what_.logs;
    options.retention.logBytes = config_.logBytesTotal;
    options.keeperIsGiven = true;
    options.onKeeperLost = [this] { changed_(); };
    sandbox_ = std::make_unique<sandbox::Sandbox>(io_, std::move(options));
    sandbox_->recover();
    if (!co_await sandbox_->settled(kSettlePatience)) {
      co_return fail(Code::kTimeout, "the keeper does not answer");
    }
    CAY_CO_TRY(stands());
    CAY_CO_ASSIGN(Fd root, co_await sandbox_->root());
    CAY_CO_ASSIGN(files_.place, placeInside(std::move(root), what_.mode, what_.firstUid, what_.cwd,
                                            files::Paths::kRoot));
    dialer_ = std::make_unique<InsideDialer>(*sandbox_);
    co_return Result<>();
  }

  void listening(uint16_t port) override {
    log(Level::kInfo, "listening",
        {{"port", int64_t{port}},
         {"version", CAY_VERSION},
         {"token", "required"},
         {"walls", sandbox::modeName(what_.mode)},
         {"tree_kill", sandbox_->treeMechanism()},
         {"no_cgroups", sandbox_->whyNoCgroups()},
         {"folder", what_.folder}});
  }

  Result<> stands() override {
    if (sandbox_->hasKeeper()) return {};
    if (!keeperAnswers()) return isOver();
    return fail(Code::kInternal, "the keeper lives, and has let go of us");
  }

 private:
  net::Dialer& dialer() override { return *dialer_; }
  // What it dials is never ours.
  [[nodiscard]] uint16_t ownPort() const override { return 0; }

  [[nodiscard]] sandbox::SandboxFolder folder() const {
    return {.base = folder_.get(), .prefix = ""};
  }

  // While it lives, it listens and greets. One that is being killed may still listen, since the
  // kernel closes its sockets one after another: then the greeting never comes.
  [[nodiscard]] bool keeperAnswers() const {
    const auto socket = sys::connectAt(folder_.get(), folder().keeperSocket());
    if (!socket) return false;
    pollfd greeted{.fd = socket->get(), .events = POLLIN, .revents = 0};
    (void)::poll(&greeted, 1, kGreetingPatienceMs);
    const auto packet = sys::receivePacket(socket->get());
    return packet ? !packet->data.empty() : packet.error().sys == EAGAIN;
  }

  // A second host would take the keeper away from the first.
  Result<> openFolder() {
    CAY_ASSIGN(folder_, sys::openAt(AT_FDCWD, what_.folder.c_str(), O_RDONLY | O_DIRECTORY));
    CAY_ASSIGN(lock_, sys::openAt(folder_.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    CAY_ASSIGN(const bool mine, sys::tryLockFd(lock_.get(), sys::Lock::kExclusive));
    if (mine) return {};
    return fail(Code::kConflict,
                "the sandbox in " + quoted(what_.folder) + " is served by another host");
  }

  // Its maker talks to the keeper until the mark is there.
  net::Task<Result<>> untilGiven() {
    const int64_t until = monotonicMs() + kGivenPatienceMs;
    const std::string mark = folder().keeperMark();
    for (Millis step = kFirstStep; !sys::statAt(folder_.get(), mark.c_str());
         step = std::min(step * 5 / 4 + kFirstStep, kLastStep)) {
      if (monotonicMs() >= until) co_return fail(Code::kTimeout, "no keeper was given to us");
      co_await net::sleepFor(step);
    }
    co_return Result<>();
  }

  const AttachedSandbox& what_;
  const std::function<void()> changed_;
  Fd folder_;
  Fd lock_;
  std::unique_ptr<InsideDialer> dialer_;
};

}  // namespace

std::unique_ptr<Served> serveAttached(boost::asio::io_context& io, net::WorkerPool& workers,
                                      const Config& config, std::function<void()> changed) {
  return std::make_unique<Attached>(io, workers, config, std::move(changed));
}

}  // namespace cay::host
