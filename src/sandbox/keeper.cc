#include "sandbox/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "base/clock.h"
#include "sandbox/keeper_loop.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kLingerMs = 10'000;        // without a host and without work
constexpr int64_t kShutdownGraceMs = 2'000;  // between TERM and KILL when told to shut down
constexpr int64_t kLastPatienceMs = 5'000;   // after its life is over
// Output of more than this is told at once (see kQuietMs).
constexpr uint64_t kQuietBytes = 64 * 1024;

// For reading output. Not part of an object on the heap: pages that are never read into cost
// nothing.
char readBuffer[64 * 1024];

}  // namespace

void Keeper::watch(int fd, uint32_t events, Source source, uint32_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<uint64_t>(source) << 32 | key;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  }
}

int Keeper::run() {
  sigset_t watched;
  ::sigemptyset(&watched);
  ::sigaddset(&watched, SIGCHLD);
  // Where commands share our uid they could forge it.
  if (!options_.inside) ::sigaddset(&watched, SIGTERM);
  signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  watch(signals_.get(), EPOLLIN, Source::kSignals);
  watch(host_.listener(), EPOLLIN, Source::kListener);
  lonelySince_ = monotonicMs();
  if (options_.lifetimeMs > 0) lifeEndsAt_ = lonelySince_ + options_.lifetimeMs;

  epoll_event events[64];
  while (true) {
    const int64_t now = monotonicMs();
    if (now >= lifeEndsAt_) {
      lifeEndsAt_ = KeptExec::kNever;
      patienceEndsAt_ = now + kLastPatienceMs;
      shutdown(Cause::kTimedOut);
      settleTouched();
    }
    if (now >= patienceEndsAt_) break;
    if (execs_.empty() && host_.settled() && (shuttingDown_ || now >= leavesAt())) break;
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), waitMs(now));
    for (int i = 0; i < count; ++i) onEvent(events[i]);
    settleTouched();
    if (!host_.flush()) loseHost();
    watchHost();
  }
  return 0;
}

int64_t Keeper::leavesAt() const {
  const bool lonely = !host_.connected() && !options_.stays;
  return lonely ? lonelySince_ + kLingerMs : KeptExec::kNever;
}

int Keeper::waitMs(int64_t now) const {
  int64_t at = deadlines_.empty() ? KeptExec::kNever : deadlines_.begin()->first;
  if (execs_.empty()) at = leavesAt();
  at = std::min({at, lifeEndsAt_, patienceEndsAt_});
  if (at == KeptExec::kNever) return -1;
  return static_cast<int>(std::clamp<int64_t>(at - now, 0, 60'000));
}

void Keeper::onEvent(const epoll_event& event) {
  const auto source = static_cast<Source>(event.data.u64 >> 32);
  switch (source) {
    case Source::kListener:
      if (host_.connected()) loseHost();
      if (host_.accept()) greet();
      return;
    case Source::kSignals:
      return onSignals();
    case Source::kHost:
      return onHost(event.events);
    default:
      break;
  }
  const auto found = execs_.find(static_cast<uint32_t>(event.data.u64));
  if (found == execs_.end()) return;
  Entry& entry = found->second;
  touch(entry);
  KeptExec& exec = *entry.exec;
  switch (source) {
    case Source::kStdout:
      return exec.readPipe(kStdout, readBuffer);
    case Source::kStderr:
      return exec.readPipe(kStderr, readBuffer);
    case Source::kStdin:
      return exec.feedStdin();
    case Source::kTree:
      if (const auto end = exec.tree().onEvent()) leaderEnded(entry, *end, monotonicMs());
      if (exec.tree().empty() && exec.leaderRuns() && !exec.tree().leaderIsOurs())
        exec.onMinderLost();
      return;
    default:
      return;
  }
}

void Keeper::onSignals() {
  signalfd_siginfo info[16];
  const ssize_t bytes = ::read(signals_.get(), info, sizeof info);
  for (size_t i = 0; bytes > 0 && i < static_cast<size_t>(bytes) / sizeof info[0]; ++i) {
    if (info[i].ssi_signo == SIGTERM) shutdown(Cause::kHostStopped);
  }
  const int64_t now = monotonicMs();
  while (const auto pid = sys::peekEndedChild()) {
    const auto known = byPid_.find(*pid);
    const auto io = known != byPid_.end() ? execs_.at(known->second).exec->ioCounts()
                                          : sys::IoCounter::Counts{};
    const auto ended = sys::reap(*pid);
    if (!ended) break;
    if (known == byPid_.end()) continue;  // an orphan of some exec, or a minder
    leaderEnded(execs_.at(known->second), {ended->status, usageOf(ended->usage, io)}, now);
  }
}

void Keeper::leaderEnded(Entry& entry, const LeaderEnd& end, int64_t now) {
  touch(entry);
  byPid_.erase(entry.exec->pid());
  for (const StreamId stream : {kStdout, kStderr}) entry.exec->readPipe(stream, readBuffer);
  entry.exec->onLeaderEnd(end, now);
}

Keeper::Entry* Keeper::find(std::string_view id) {
  const auto found = byId_.find(std::string(id));
  return found == byId_.end() ? nullptr : &execs_.at(found->second);
}

void Keeper::setWatch(Entry& entry, int slot, bool wanted, int fd, uint32_t events, Source source) {
  if (entry.watching[slot] == wanted) return;
  entry.watching[slot] = wanted;
  if (fd < 0) return;  // closed, and so out of the set
  if (wanted) {
    watch(fd, events, source, entry.key);
  } else {
    (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }
}

void Keeper::touch(Entry& entry) {
  if (entry.touched) return;
  entry.touched = true;
  touched_.push_back(entry.key);
}

void Keeper::settleTouched() {
  const int64_t now = monotonicMs();
  for (const auto& [at, key] : deadlines_) {
    if (at > now) break;
    touch(execs_.at(key));
  }
  for (size_t i = 0; i < touched_.size(); ++i) {
    if (const auto found = execs_.find(touched_[i]); found != execs_.end())
      settle(found->second, now);
  }
  touched_.clear();
}

// After every round of events: deadlines, what is to be watched, what the host is to be told.
void Keeper::settle(Entry& entry, int64_t now) {
  entry.touched = false;
  KeptExec& exec = *entry.exec;
  if (now >= exec.nextDeadline()) exec.onDeadline(now);
  const auto exit = exec.takeExit();
  if (!exit) exec.flushLog();
  const bool gone = exec.finished();
  if (exit) {
    tellExit(entry, *exit, gone);
  } else if (gone) {
    tellGone(entry);
  } else if (now >= entry.quietUntil || exec.totals().at[kStdout] > kQuietBytes) {
    if (entry.observed && !std::ranges::equal(exec.totals().at, entry.told.at)) {
      tellProgress(entry);
    } else if (entry.quietUntil != 0) {
      tellStarted(entry);
    }
  }
  if (gone) {
    byId_.erase(exec.id());
    deadlines_.erase({entry.deadline, entry.key});
    if (entry.treeWatched && exec.tree().eventFd() >= 0) {
      (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, exec.tree().eventFd(), nullptr);
    }
    execs_.erase(entry.key);
    lonelySince_ = now;
    return;
  }
  setWatch(entry, 0, exec.wantsRead(kStdout), exec.pipe(kStdout), EPOLLIN, Source::kStdout);
  setWatch(entry, 1, exec.wantsRead(kStderr), exec.pipe(kStderr), EPOLLIN, Source::kStderr);
  setWatch(entry, 2, exec.wantsWrite(), exec.stdinPipe(), EPOLLOUT, Source::kStdin);
  if (!entry.treeWatched && !exec.leaderRuns()) {
    watch(exec.tree().eventFd(), exec.tree().eventMask(), Source::kTree, entry.key);
    entry.treeWatched = true;
  }
  const int64_t deadline =
      std::min(exec.nextDeadline(), entry.quietUntil != 0 ? entry.quietUntil : KeptExec::kNever);
  if (deadline != entry.deadline) {
    deadlines_.erase({entry.deadline, entry.key});
    if (deadline != KeptExec::kNever) deadlines_.insert({deadline, entry.key});
    entry.deadline = deadline;
  }
}

void Keeper::shutdown(Cause cause) {
  if (shuttingDown_) return;
  shuttingDown_ = true;
  const int64_t now = monotonicMs();
  for (auto& [key, entry] : execs_) {
    touch(entry);
    entry.exec->setLimits({{kNoLimit, kNoLimit}});
    entry.exec->end(cause, kShutdownGraceMs, now);
  }
}

namespace {

// By system call, since the C library hides two signals of its own, which posix_spawn leaves
// ignored.
void resetSignals() {
  struct {
    void (*handler)(int) = SIG_DFL;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    unsigned long mask = 0;
  } const byDefault;
  for (int number = 1; number < NSIG; ++number) {
    (void)::syscall(SYS_rt_sigaction, number, &byDefault, nullptr, sizeof byDefault.mask);
  }
}

}  // namespace

void blockSignals() {
  resetSignals();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

int runKeeper(KeeperOptions options) {
  ::prctl(PR_SET_NAME, "cay-keeper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!options.inside) blockSignals();

  std::unique_ptr<ProcessTrees> trees;
  if (options.inside) {
    if (Fd groups = options.inside->takeExecGroups(); groups.valid()) {
      trees = cgroupTreesIn(std::move(groups));
    }
  } else if (options.noCgroups.empty()) {
    auto made = cgroupTrees(options.cgroupName);
    if (made) {
      trees = std::move(*made);
    } else {
      options.noCgroups = made.error().message;
    }
  }
  if (!trees) trees = subreaperTrees();
  return Keeper(std::move(options), std::move(trees)).run();
}

}  // namespace cay::sandbox
