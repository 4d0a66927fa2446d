// The nursery itself: takes plans and becomes keepers. One thread; between two plans it only reaps.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "isolation/enclosure.h"
#include "layers/loop_device.h"
#include "sandbox/keeper.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/nursery.h"
#include "sandbox/nursery_protocol.h"
#include "sandbox/plan_wire.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/namespaces.h"
#include "sys/packet.h"

namespace cay::sandbox {
namespace {

constexpr int kExitFailure = 1;
// So that the kernel, when the whole machine runs out of memory, looks at sandboxes first.
constexpr char kOomScore[] = "300";

class NurseryProcess {
 public:
  NurseryProcess(const NurserySettings& settings, isolation::Tools tools, Fd host)
      : settings_(settings), tools_(std::move(tools)), host_(std::move(host)) {}

  int run();

 private:
  // The exit code, in a new keeper; nullopt in the nursery.
  std::optional<int> onPlan(sys::Packet packet);
  int becomeKeeper(const isolation::Plan& plan, isolation::Placed placed, Fd listener, Fd network);
  Result<KeeperOptions> prepare(const isolation::Plan& plan, const isolation::Placed& placed,
                                const Fd& network) const;
  static void refuse(const Fd& listener, const Error& error);

  const NurserySettings& settings_;
  isolation::Tools tools_;
  Fd host_;
  Fd signals_;
};

Fd childSignals() {
  blockSignals();
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int NurseryProcess::run() {
  signals_ = childSignals();
  while (true) {
    pollfd watched[] = {{.fd = host_.get(), .events = POLLIN, .revents = 0},
                        {.fd = signals_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(watched, std::size(watched), -1) < 0 && errno != EINTR) return kExitFailure;
    if (watched[1].revents != 0) {
      signalfd_siginfo info;
      while (::read(signals_.get(), &info, sizeof info) > 0) {
      }
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
    }
    if (watched[0].revents == 0) continue;
    auto packet = sys::receivePacket(host_.get());
    if (!packet && packet.error().sys == EAGAIN) continue;
    if (!packet || packet->data.empty()) return 0;
    if (const auto code = onPlan(std::move(*packet))) return *code;
  }
}

std::optional<int> NurseryProcess::onPlan(sys::Packet packet) {
  Reader in(packet.data);
  const isolation::Plan plan = getPlan(in);
  Fd listener = packet.take(kListener);
  if (!in.ok() || plan.id.empty() || plan.id.contains('/') || plan.mode != settings_.mode) {
    refuse(listener, Error{Code::kInternal, 0, "the nursery does not understand its host"});
    return std::nullopt;
  }
  auto placed = tools_.place(plan);
  if (!placed) {
    refuse(listener, placed.error());
    return std::nullopt;
  }
  const auto born = sys::forkInto(isolation::namespacesFor(plan));
  if (!born) {
    refuse(listener, born.error());
    return std::nullopt;
  }
  if (*born > 0) return std::nullopt;
  return becomeKeeper(plan, *std::move(placed), std::move(listener), packet.take(kNetwork));
}

int NurseryProcess::becomeKeeper(const isolation::Plan& plan, isolation::Placed placed, Fd listener,
                                 Fd network) {
  host_.reset();
  signals_.reset();
  ::setsid();
  const Fd door(::fcntl(listener.get(), F_DUPFD_CLOEXEC, 3));
  auto options = prepare(plan, placed, network);
  placed = {};
  network.reset();
  if (!options) {
    refuse(door, options.error());
    return kExitFailure;
  }
  options->listener = std::move(listener);
  return runKeeper(std::move(*options));
}

Result<KeeperOptions> NurseryProcess::prepare(const isolation::Plan& plan,
                                              const isolation::Placed& placed,
                                              const Fd& network) const {
  const std::string folder =
      (tools_.stage ? isolation::kStageState : settings_.sandboxes) + "/" + plan.id;
  KeeperOptions options;
  options.shape = settings_.shape;
  options.noCgroups = tools_.groups.why();
  options.lifetimeMs = plan.lifetimeMs;
  options.stays = plan.stays;
  CAY_ASSIGN(options.logFolder,
             sys::openAt(AT_FDCWD, (folder + "/execs").c_str(), O_RDONLY | O_DIRECTORY));
  Fd disk;
  if (plan.limits.diskBytes > 0 && tools_.stage) {
    CAY_ASSIGN(const Fd image, sys::openAt(AT_FDCWD, (folder + "/disk.img").c_str(), O_RDWR));
    CAY_ASSIGN(disk, layers::attachLoop(image, tools_.stage->devices()));
  }
  CAY_ASSIGN(options.inside, isolation::enclose(tools_, {.plan = plan,
                                                         .placed = placed,
                                                         .network = network,
                                                         .disk = disk,
                                                         .logFolder = options.logFolder.get()}));
  return options;
}

// Speaks for the keeper that there will not be.
void NurseryProcess::refuse(const Fd& listener, const Error& error) {
  const Fd host(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!host.valid()) return;
  Writer message;
  message.put(Message::kRefused).put(std::string_view(error.message));
  (void)sys::sendPacket(host.get(), message.bytes());
}

}  // namespace

int runNursery(const NurserySettings& settings) {
  ::prctl(PR_SET_NAME, "cay-nursery");
  // What a keeper without a pid namespace leaves behind falls back to us, to be reaped.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::umask(022);
  Fd host(kNurserySocket);
  ::fcntl(host.get(), F_SETFD, FD_CLOEXEC);
  if (const Fd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score.valid()) {
    (void)sys::writeAll(score.get(), kOomScore);
  }
  Fd users(settings.usersGiven ? kNurseryUsers : -1);
  auto tools = isolation::Tools::make(settings.mode, settings.sandboxes, settings.groupName, users);
  users.reset();  // keepers are copies of us
  Writer message;
  if (!tools) {
    message.put(NurseryMessage::kFailed).put(std::string_view(tools.error().message));
    (void)sys::sendPacket(host.get(), message.bytes());
    return kExitFailure;
  }
  (void)sys::sendPacket(host.get(), message.put(NurseryMessage::kReady).bytes());
  return NurseryProcess(settings, std::move(*tools), std::move(host)).run();
}

}  // namespace cay::sandbox
