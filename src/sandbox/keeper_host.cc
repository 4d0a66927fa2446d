// What the keeper and its host say to each other.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "sandbox/keeper_loop.h"
#include "sys/io.h"
#include "sys/process.h"

// Only glibc has it, and only glibc needs it: musl gives freed memory back by itself.
extern "C" __attribute__((weak)) int malloc_trim(size_t pad) noexcept;

namespace cay::sandbox {
namespace {

// Most commands end within this time and are reported with one message, output and all: waking the
// host while a command starts would slow both down. Much output is told at once.
constexpr int64_t kQuietMs = 2;

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
  if (::malloc_trim != nullptr) (void)::malloc_trim(0);
  const Fd file(::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  if (file.valid()) (void)sys::writeAll(file.get(), "5");
}

}  // namespace

void Keeper::watchHost() {
  if (!host_.connected() || host_.events() == watchedFor_) return;
  watchedFor_ = host_.events();
  watch(host_.connection(), watchedFor_, Source::kHost);
}

void Keeper::onHost(uint32_t events) {
  if ((events & EPOLLOUT) != 0) host_.setWritable();
  if ((events & ~EPOLLOUT) == 0 || !host_.connected()) return;
  auto packet = host_.receive();
  if (!packet) return loseHost();
  if (!packet->data.empty()) onHostPacket(std::move(*packet));
}

void Keeper::loseHost() {
  host_.drop();
  watchedFor_ = 0;
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
  if (!host_.send(message, fd)) loseHost();
}

void Keeper::greet() {
  Writer hello;
  hello.put(Message::kHello).put(kKeeperProtocol).put(trees_->mechanism()).put(options_.noCgroups);
  const auto own = sys::pidfdOpen(::getpid());
  tell(hello, own ? own->get() : -1);
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

void Keeper::tellRoot() {
  Writer answer;
  const bool known = options_.inside.has_value();
  tell(answer.put(Message::kRoot).put(known), known ? options_.inside->files().get() : -1);
}

// In the sandbox's network; the host connects it.
void Keeper::tellSocket() {
  // One kind reaches servers of both, where there is IPv6 at all.
  Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int both = 0;
  if (!socket.valid() ||
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof both) != 0) {
    socket = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  Writer answer;
  tell(answer.put(Message::kSocket).put(socket.valid()), socket.get());
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

void Keeper::onHostPacket(sys::Packet packet) {
  Reader in(packet.data);
  const auto kind = in.get<Message>();
  if (kind == Message::kStart) {
    const bool isLong = !packet.fds.empty();
    start(in, packet.take());
    if (isLong) forgetPeakMemory();
    return;
  }
  if (kind == Message::kShutdown) return shutdown(Cause::kHostStopped);
  if (kind == Message::kAskRoot) return tellRoot();
  if (kind == Message::kAskSocket) return tellSocket();
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
      .logFolder = options_.logFolder.get(),
      .shape = options_.shape,
      .trees = *trees_,
      .oom = oom_,
      .forks = forks_,
      .inside = options_.inside ? &*options_.inside : nullptr,
      .alone = execs_.empty(),
      .null = null_.get(),
      .openFiles = commandFiles_,
  };
  auto exec = shuttingDown_
                  ? std::unexpected(StartFailure{StartFault::kShortage, 0, "the host is stopping"})
                  : KeptExec::start(around, spec, std::move(stdinData));
  if (!exec) {
    Writer failed;
    failed.put(Message::kStartFailed).put(std::string_view(spec.id)).put(exec.error().fault);
    failed.put(exec.error().exitCode).put(std::string_view(exec.error().message));
    return tell(failed);
  }
  for (auto& [other, companion] : execs_) companion.exec->setAccompanied();
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

}  // namespace cay::sandbox
