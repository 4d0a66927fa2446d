#include "sandbox/keeper.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/kept_exec.h"
#include "sandbox/wire.h"
#include "sys/io.h"
#include "sys/packet.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kLingerMs = 10'000;        // without a host and without work
constexpr int64_t kShutdownGraceMs = 2'000;  // between TERM and KILL when told to shut down
constexpr size_t kReadBytes = 64 * 1024;
// Most commands end within this time and are reported with one message, output and all: waking the
// host while a command starts would slow both down. Much output is told at once.
constexpr int64_t kQuietMs = 2;
constexpr uint64_t kQuietBytes = 64 * 1024;

// What an epoll event is about.
enum class Source : uint8_t { kListener, kHost, kSignals, kStdout, kStderr, kStdin, kTree };

// A long spec comes at the beginning of a file.
Result<std::string> readAttached(const Fd& file, uint64_t length) {
  std::string out(length, '\0');
  CAY_ASSIGN(const size_t count, sys::preadSome(file.get(), out, 0));
  out.resize(count);
  return out;
}

uint64_t sizeOf(const Fd& file) {
  struct stat info{};
  return ::fstat(file.get(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

// The kernel counts a command's peak memory from ours, so ours must forget what a long spec took.
void forgetPeakMemory() {
  (void)::malloc_trim(0);
  const Fd file(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)sys::writeAll(file.get(), "5");
}

class Keeper {
 public:
  Keeper(KeeperOptions options, std::unique_ptr<ProcessTrees> trees)
      : options_(std::move(options)),
        trees_(std::move(trees)),
        oom_(OomCounter::forOwnGroup()),
        null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        buffer_(kReadBytes, '\0') {
    ::getrlimit(RLIMIT_NOFILE, &commandFiles_);
    commandFiles_.rlim_cur = std::min<rlim_t>(options_.commandOpenFiles, commandFiles_.rlim_max);
  }

  int run();

 private:
  // An exec and what of it is in the epoll set.
  struct Entry {
    uint32_t key = 0;
    std::unique_ptr<KeptExec> exec;
    bool watching[3] = {false, false, false};  // stdout, stderr, stdin
    bool treeWatched = false;
    bool observed = false;   // the host follows the output
    int64_t quietUntil = 0;  // nothing is told before, unless it ends; 0: it has been told of
    Offsets told;            // totals of the last kProgress
    int64_t deadline = KeptExec::kNever;  // as it stands in deadlines_
    bool touched = false;                 // is in touched_
  };

  // Descriptors.
  void watch(int fd, uint32_t events, Source source, uint32_t key = 0);
  void onEvent(const epoll_event& event);
  void onSignals();
  void onHost(uint32_t events);
  void onHostPacket(sys::Packet packet);
  void watchHost();
  void acceptHost();
  void loseHost();

  // Messages.
  void tell(const Writer& message, int fd = -1);
  void flushOutbox();
  void greet();
  void start(Reader& in, Fd attached);
  void handleMessage(Message kind, Reader& in);
  void tellStarted(Entry& entry);
  void tellProgress(Entry& entry);
  void tellExit(Entry& entry, const ExitRecord& exit, bool gone);
  void tellGone(const Entry& entry);

  // Execs.
  Entry* find(std::string_view id);
  void touch(Entry& entry);
  void settleTouched();
  void settle(Entry& entry, int64_t now);
  void setWatch(Entry& entry, int slot, bool wanted, int fd, uint32_t events, Source source);
  void leaderEnded(Entry& entry, const LeaderEnd& end, int64_t now);
  void shutdown();
  [[nodiscard]] int waitMs(int64_t now) const;

  KeeperOptions options_;
  std::unique_ptr<ProcessTrees> trees_;
  OomCounter oom_;
  Fd null_;
  Fd epoll_;
  Fd signals_;
  Fd host_;
  std::deque<std::pair<std::string, Fd>> outbox_;
  bool hostWritable_ = true;
  rlimit commandFiles_{};
  std::string buffer_;

  std::unordered_map<uint32_t, Entry> execs_;
  std::unordered_map<std::string, uint32_t> byId_;
  std::unordered_map<pid_t, uint32_t> byPid_;
  std::set<std::pair<int64_t, uint32_t>> deadlines_;
  std::vector<uint32_t> touched_;
  uint32_t nextKey_ = 1;
  bool shuttingDown_ = false;
  int64_t lonelySince_ = 0;
};

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
  ::sigaddset(&watched, SIGTERM);
  signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  watch(signals_.get(), EPOLLIN, Source::kSignals);
  watch(options_.listener.get(), EPOLLIN, Source::kListener);
  lonelySince_ = monotonicMs();

  epoll_event events[64];
  while (true) {
    int64_t now = monotonicMs();
    if (execs_.empty() && outbox_.empty() &&
        (shuttingDown_ || (!host_.valid() && now >= lonelySince_ + kLingerMs)))
      break;
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), waitMs(now));
    for (int i = 0; i < count; ++i) onEvent(events[i]);
    settleTouched();
    flushOutbox();
  }
  return 0;
}

int Keeper::waitMs(int64_t now) const {
  int64_t at = deadlines_.empty() ? KeptExec::kNever : deadlines_.begin()->first;
  if (execs_.empty() && !host_.valid()) at = lonelySince_ + kLingerMs;
  if (at == KeptExec::kNever) return -1;
  return static_cast<int>(std::clamp<int64_t>(at - now, 0, 60'000));
}

void Keeper::onEvent(const epoll_event& event) {
  const auto source = static_cast<Source>(event.data.u64 >> 32);
  switch (source) {
    case Source::kListener:
      return acceptHost();
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
      return exec.readPipe(kStdout, buffer_);
    case Source::kStderr:
      return exec.readPipe(kStderr, buffer_);
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
    if (info[i].ssi_signo == SIGTERM) shutdown();
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
  for (const StreamId stream : {kStdout, kStderr}) entry.exec->readPipe(stream, buffer_);
  entry.exec->onLeaderEnd(end, now);
}

void Keeper::acceptHost() {
  Fd connection(::accept4(options_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection.valid()) return;
  // The newest connection is the host: an older one can only be the end of a host that has died.
  if (host_.valid()) loseHost();
  host_ = std::move(connection);
  hostWritable_ = true;
  watchHost();
  greet();
}

void Keeper::watchHost() {
  watch(host_.get(), hostWritable_ ? EPOLLIN : EPOLLIN | EPOLLOUT, Source::kHost);
}

void Keeper::onHost(uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    hostWritable_ = true;
    watchHost();
  }
  if ((events & ~EPOLLOUT) == 0) return;
  auto packet = sys::receivePacket(host_.get());
  if (!packet && packet.error().sys == EAGAIN) return;
  if (!packet || packet->data.empty()) return loseHost();
  onHostPacket(std::move(*packet));
}

void Keeper::loseHost() {
  host_.reset();
  outbox_.clear();
  const int64_t now = monotonicMs();
  lonelySince_ = now;
  for (auto& [key, entry] : execs_) {
    touch(entry);
    entry.observed = false;
    entry.exec->setLimits({{kNoLimit, kNoLimit}});
    entry.exec->setAttended(false, now);
  }
}

void Keeper::tell(const Writer& message, int fd) {
  if (!host_.valid()) return;
  if (outbox_.empty() && hostWritable_) {
    const auto sent = sys::sendPacket(host_.get(), message.bytes(), fd);
    if (sent) return;
    if (sent.error().sys != EAGAIN) return loseHost();
    hostWritable_ = false;
    watchHost();
  }
  outbox_.emplace_back(message.bytes(), fd >= 0 ? Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)) : Fd());
}

void Keeper::flushOutbox() {
  while (host_.valid() && hostWritable_ && !outbox_.empty()) {
    const auto sent =
        sys::sendPacket(host_.get(), outbox_.front().first, outbox_.front().second.get());
    if (!sent && sent.error().sys == EAGAIN) {
      hostWritable_ = false;
      return watchHost();
    }
    if (!sent) return loseHost();
    outbox_.pop_front();
  }
}

void Keeper::greet() {
  Writer hello;
  hello.put(Message::kHello).put(kKeeperProtocol).put(trees_->mechanism()).put(options_.noCgroups);
  tell(hello);
  for (const auto& [key, entry] : execs_) {
    Writer live;
    live.put(Message::kLive).put(std::string_view(entry.exec->id())).put(entry.exec->pid());
    putOffsets(live, entry.exec->totals());
    putOffsets(live, entry.exec->lostFrom());
    live.put(entry.exec->leaderRuns());
    tell(live);
  }
  Writer ready;
  ready.put(Message::kReady);
  tell(ready);
}

void Keeper::tellStarted(Entry& entry) {
  entry.quietUntil = 0;
  Writer message;
  tell(message.put(Message::kStarted)
           .put(std::string_view(entry.exec->id()))
           .put(entry.exec->pid()));
}

void Keeper::tellProgress(Entry& entry) {
  entry.quietUntil = 0;
  entry.told = entry.exec->totals();
  Writer message;
  message.put(Message::kProgress).put(std::string_view(entry.exec->id())).put(entry.exec->pid());
  putOffsets(message, entry.exec->totals());
  putOffsets(message, entry.exec->lostFrom());
  tell(message);
}

void Keeper::tellExit(Entry& entry, const ExitRecord& exit, bool gone) {
  entry.quietUntil = 0;
  Writer message;
  message.put(Message::kExit).put(std::string_view(entry.exec->id()));
  putExit(message, exit);
  putOffsets(message, entry.exec->lostFrom());
  tell(message.put(gone));
}

void Keeper::tellGone(const Entry& entry) {
  Writer message;
  message.put(Message::kGone).put(std::string_view(entry.exec->id()));
  putOffsets(message, entry.exec->totals());
  putOffsets(message, entry.exec->lostFrom());
  tell(message);
}

Keeper::Entry* Keeper::find(std::string_view id) {
  const auto found = byId_.find(std::string(id));
  return found == byId_.end() ? nullptr : &execs_.at(found->second);
}

void Keeper::onHostPacket(sys::Packet packet) {
  Reader in(packet.data);
  const auto kind = in.get<Message>();
  if (kind == Message::kStart) {
    const bool isLong = packet.fd.valid();
    start(in, std::move(packet.fd));
    if (isLong) forgetPeakMemory();
    return;
  }
  if (kind == Message::kShutdown) return shutdown();
  handleMessage(kind, in);
}

void Keeper::handleMessage(Message kind, Reader& in) {
  const std::string_view id = in.text();
  Entry* entry = find(id);
  if (entry == nullptr) {
    if (kind == Message::kAskStdin) {
      Writer answer;
      tell(answer.put(Message::kStdin).put(id).put(false));
    }
    return;
  }
  touch(*entry);
  KeptExec& exec = *entry->exec;
  const int64_t now = monotonicMs();
  switch (kind) {
    case Message::kWindow: {
      const Offsets limits = getOffsets(in);
      exec.setLimits(limits);
      entry->observed = limits.at[kStdout] != kNoLimit || limits.at[kStderr] != kNoLimit;
      // The answer tells a new reader how far the log reaches now that it cannot run away.
      if (entry->observed) entry->told.at[kStdout] = kNoLimit;
      return;
    }
    case Message::kAttended:
      return exec.setAttended(in.get<bool>(), now);
    case Message::kEnd: {
      const auto cause = in.get<Cause>();
      return exec.end(cause, in.get<int64_t>(), now);
    }
    case Message::kSignal:
      return exec.signalGroup(in.get<int32_t>());
    case Message::kAskStdin: {
      Writer answer;
      const bool open = exec.stdinPipe() >= 0;
      tell(answer.put(Message::kStdin).put(id).put(open), open ? exec.stdinPipe() : -1);
      return;
    }
    case Message::kCloseStdin:
      return exec.closeStdin();
    default:
      return;
  }
}

void Keeper::start(Reader& in, Fd attached) {
  const Offsets limits = getOffsets(in);
  const auto attended = in.get<bool>();
  const auto specBytes = in.get<uint64_t>();
  ExecSpec spec;
  KeptExec::StdinData stdinData;
  bool understood = true;
  if (attached.valid()) {
    const uint64_t fileBytes = sizeOf(attached);
    const auto bytes = readAttached(attached, std::min(specBytes, fileBytes));
    Reader whole(bytes ? std::string_view(*bytes) : std::string_view());
    spec = getSpec(whole);
    understood = whole.ok();
    stdinData = {.file = std::move(attached), .from = specBytes, .to = fileBytes};
  } else {
    spec = getSpec(in);
    understood = in.ok();
  }
  if (!understood || spec.argv.empty()) return;
  KeptExec::Surroundings around{
      options_.logFolder.get(), options_.shape, *trees_, oom_, null_.get(), commandFiles_};
  auto exec = shuttingDown_
                  ? std::unexpected(StartFailure{StartFault::kShortage, 0, "the host is stopping"})
                  : KeptExec::start(around, spec, std::move(stdinData));
  if (!exec) {
    Writer failed;
    failed.put(Message::kStartFailed).put(std::string_view(spec.id)).put(exec.error().fault);
    failed.put(exec.error().exitCode).put(std::string_view(exec.error().message));
    return tell(failed);
  }
  const uint32_t key = nextKey_++;
  Entry& entry = execs_[key];
  entry.key = key;
  entry.exec = std::move(*exec);
  touch(entry);
  entry.observed = limits.at[kStdout] != kNoLimit;
  entry.exec->setLimits(limits);
  byId_[spec.id] = key;
  byPid_[entry.exec->pid()] = key;
  if (!entry.exec->tree().leaderIsOurs()) {
    watch(entry.exec->tree().eventFd(), entry.exec->tree().eventMask(), Source::kTree, key);
    entry.treeWatched = true;
  }
  entry.quietUntil = monotonicMs() + kQuietMs;
  if (!attended && spec.kind == Kind::kExec) entry.exec->setAttended(false, monotonicMs());
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

void Keeper::shutdown() {
  if (shuttingDown_) return;
  shuttingDown_ = true;
  const int64_t now = monotonicMs();
  for (auto& [key, entry] : execs_) {
    touch(entry);
    entry.exec->setLimits({{kNoLimit, kNoLimit}});
    entry.exec->end(Cause::kHostStopped, kShutdownGraceMs, now);
  }
}

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

int runKeeper(KeeperOptions options) {
  ::prctl(PR_SET_NAME, "cay-keeper");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Commands inherit dispositions and must find every signal at its default, whatever we were
  // started with.
  resetSignals();
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);

  std::unique_ptr<ProcessTrees> trees;
  if (options.noCgroups.empty()) {
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
