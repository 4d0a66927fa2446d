// Process trees held together by a minder: a small process for each exec that starts the command
// and that the kernel makes the parent of every orphan below it (PR_SET_CHILD_SUBREAPER). It ends
// with the last of them. Used where no cgroup can be made; costs one more fork for each exec.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "sandbox/descendants.h"
#include "sandbox/process_tree.h"
#include "sandbox/wire.h"
#include "sys/io.h"
#include "sys/packet.h"

namespace cay::sandbox {
namespace {

constexpr int kStartPatienceMs = 10'000;
constexpr int kExecPatienceMs = 2'000;  // once the leader has announced itself

// From the leader, before it becomes the command: who it is. From the minder: how the start went,
// then the leader's end. To the minder: signals to pass on.
enum class Note : uint8_t { kComing, kStarted, kFailed, kLeaderEnded, kSignal, kKill };

// Where commands are of the minder's own user, one may end or stop it before it could say that the
// command runs. That it runs is then known all the same.
void announceLeader(int keeper) {
  constexpr Note kNote = Note::kComing;
  const pid_t self = ::getpid();
  char bytes[sizeof kNote + sizeof self];
  std::memcpy(bytes, &kNote, sizeof kNote);
  std::memcpy(bytes + sizeof kNote, &self, sizeof self);
  (void)::send(keeper, bytes, sizeof bytes, MSG_NOSIGNAL);
}

// The minder's whole life; runs in a forked copy of the keeper.
class Minder {
 public:
  explicit Minder(int keeper) : keeper_(keeper) {}

  [[noreturn]] void run(const LaunchPlan& plan) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::prctl(PR_SET_NAME, "cay-minder");
    start(plan);
    closeAllButKeeper();
    leaderIo_ = sys::IoCounter(leader_);
    sigset_t childSignal;
    ::sigemptyset(&childSignal);
    ::sigaddset(&childSignal, SIGCHLD);
    const Fd children(::signalfd(-1, &childSignal, SFD_CLOEXEC | SFD_NONBLOCK));
    while (reapAll()) {
      pollfd ready[2] = {{keeper_, POLLIN, 0}, {children.get(), POLLIN, 0}};
      (void)::poll(ready, 2, -1);
      if (ready[0].revents != 0) obey();
      signalfd_siginfo drained[16];
      (void)!::read(children.get(), drained, sizeof drained);
    }
    ::_exit(0);
  }

 private:
  void start(LaunchPlan plan) {
    plan.beforeExec = announceLeader;
    plan.herald = keeper_;
    const Launched born = launch(plan);
    Writer note;
    if (!born) {
      note.put(Note::kFailed).put(born.error().fault).put(born.error().exitCode);
      note.put(born.error().message);
      (void)sys::sendPacket(keeper_, note.bytes());
      ::_exit(0);
    }
    leader_ = born->pid;
    note.put(Note::kStarted).put(leader_);
    (void)sys::sendPacket(keeper_, note.bytes(), born->pidfd.get());
  }

  // What was inherited from the keeper (other execs' pipes, this one's) would keep those pipes
  // open.
  void closeAllButKeeper() {
    constexpr int kKept = 3;
    if (keeper_ != kKept) {
      (void)::dup3(keeper_, kKept, O_CLOEXEC);
      keeper_ = kKept;
    }
    (void)::syscall(SYS_close_range, kKept + 1, ~0U, 0);
  }

  // False when no child is left, so that nothing can come any more.
  bool reapAll() {
    while (const auto pid = sys::peekEndedChild()) {
      const auto io = *pid == leader_ ? leaderIo_.read() : sys::IoCounter::Counts{};
      const auto ended = sys::reap(*pid);
      if (!ended || ended->pid != leader_) continue;
      Writer note;
      note.put(Note::kLeaderEnded).put(ended->status);
      putUsage(note, usageOf(ended->usage, io));
      (void)sys::sendPacket(keeper_, note.bytes());
      leader_ = -1;
    }
    siginfo_t info{};
    return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
  }

  void obey() {
    while (const auto packet = sys::receivePacket(keeper_)) {
      if (packet->data.empty())
        return killAll();  // the keeper is gone: nobody would ever end these
      Reader in(packet->data);
      if (in.get<Note>() == Note::kKill) {
        killAll();
      } else {
        const auto group = in.get<pid_t>();
        signalOutside(group, in.get<int>());
      }
    }
  }

  static void signalOutside(pid_t group, int number) {
    for (const ProcessRef& process : descendantsOf(::getpid())) {
      if (::getpgid(process.pid) != group) (void)signalProcess(process, number);
    }
  }

  // Again and again, since what is not killed yet goes on forking.
  void killAll() {
    while (true) {
      const std::vector<ProcessRef> alive = descendantsOf(::getpid());
      if (alive.empty()) return;
      for (const ProcessRef& process : alive) (void)signalProcess(process, SIGKILL);
      (void)reapAll();
    }
  }

  int keeper_;
  pid_t leader_ = -1;
  sys::IoCounter leaderIo_;
};

class SubreaperTree : public ProcessTree {
 public:
  Launched start(LaunchPlan plan) override {
    const auto shortage = [](const std::string& what) {
      return std::unexpected(
          StartFailure{StartFault::kShortage, 0, "cannot start a process: " + what});
    };
    auto pair = sys::packetPair();
    if (!pair) return shortage(pair.error().message);
    const pid_t minder = ::fork();
    if (minder < 0) return shortage(errnoText(errno));
    if (minder == 0) Minder(pair->second.get()).run(plan);
    minder_ = std::move(pair->first);
    pair->second.reset();
    if (auto process = sys::pidfdOpen(minder)) process_ = std::move(*process);
    std::optional<sys::Born> leader;
    while (true) {
      pollfd ready{minder_.get(), POLLIN, 0};
      const bool silent = ::poll(&ready, 1, leader ? kExecPatienceMs : kStartPatienceMs) == 0;
      auto packet = silent ? Result<sys::Packet>() : sys::receivePacket(minder_.get());
      if (!packet || packet->data.empty()) {
        // The command itself has done that to its minder; onEvent and kill() see to the rest.
        if (leader) return *std::move(leader);
        if (silent) (void)sys::pidfdSignal(process_, SIGKILL);
        return shortage(silent ? "its minder does not answer" : "its minder died");
      }
      Reader in(packet->data);
      switch (in.get<Note>()) {
        case Note::kComing: {
          const auto pid = in.get<pid_t>();
          if (auto pidfd = sys::pidfdOpen(pid)) leader = sys::Born{pid, std::move(*pidfd)};
          break;
        }
        case Note::kStarted:
          return sys::Born{in.get<pid_t>(), packet->take()};
        default:
          return std::unexpected(failureIn(in));
      }
    }
  }

  void signalOutside(pid_t group, int number) override {
    Writer note;
    note.put(Note::kSignal).put(group).put(number);
    (void)sys::sendPacket(minder_.get(), note.bytes());
  }

  // Where commands are of the minder's own user they may have stopped it, so it is woken first; if
  // it has still not done its work when asked again, it goes too, and its children become ours.
  void kill() override {
    (void)sys::pidfdSignal(process_, asked_ ? SIGKILL : SIGCONT);
    asked_ = true;
    Writer note;
    note.put(Note::kKill);
    (void)sys::sendPacket(minder_.get(), note.bytes());
  }

  bool empty() override { return !minder_.valid(); }
  [[nodiscard]] int eventFd() const override { return minder_.get(); }
  [[nodiscard]] unsigned eventMask() const override { return EPOLLIN; }

  std::optional<LeaderEnd> onEvent() override {
    const auto packet = sys::receivePacket(minder_.get());
    if (!packet) return std::nullopt;
    if (packet->data.empty()) {
      minder_.reset();
      return std::nullopt;
    }
    Reader in(packet->data);
    if (in.get<Note>() != Note::kLeaderEnded) return std::nullopt;
    LeaderEnd end;
    end.status = in.get<int>();
    end.usage = getUsage(in);
    return end;
  }

  [[nodiscard]] bool leaderIsOurs() const override { return false; }

 private:
  static StartFailure failureIn(Reader& in) {
    StartFailure failure;
    failure.fault = in.get<StartFault>();
    failure.exitCode = in.get<int>();
    failure.message = in.text();
    return failure;
  }

  Fd minder_;           // closed by the minder's end
  Fd process_;          // the minder
  bool asked_ = false;  // to kill them all
};

class SubreaperTrees : public ProcessTrees {
 public:
  Result<std::unique_ptr<ProcessTree>> make() override { return std::make_unique<SubreaperTree>(); }
  [[nodiscard]] std::string_view mechanism() const override { return "subreaper"; }
};

}  // namespace

std::unique_ptr<ProcessTrees> subreaperTrees() {
  return std::make_unique<SubreaperTrees>();
}

Usage usageOf(const rusage& usage, const sys::IoCounter::Counts& io) {
  const auto millis = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1000 + static_cast<uint64_t>(time.tv_usec) / 1000;
  };
  return {.userMs = millis(usage.ru_utime),
          .systemMs = millis(usage.ru_stime),
          .maxRssBytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024,
          .readBytes = io.readBytes,
          .writeBytes = io.writtenBytes};
}

}  // namespace cay::sandbox
