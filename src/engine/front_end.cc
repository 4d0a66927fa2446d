#include "engine/front_end.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <cerrno>
#include <cstdio>

#include "base/log.h"
#include "base/text.h"
#include "engine/child_process.h"
#include "net/readable.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/namespaces.h"
#include "sys/process.h"
#include "sys/socket.h"

namespace cay::engine {
namespace {

constexpr char kSocket[] = "host.sock";
constexpr char kMark[] = "host.mark";
constexpr char kLog[] = "host.log";
constexpr char kEnd[] = "host.end";
constexpr mode_t kOwnerOnly = 0600;
constexpr int kBacklog = 512;
constexpr Millis kFirstDelay{50};
constexpr Millis kLongestDelay{1000};
constexpr uint32_t kMostFailures = 10;
constexpr int kExitWrong = 2;  // host/startup.h
constexpr Millis kConnectRetry{20};
constexpr int kConnectTries = 100;
constexpr size_t kMostWords = 300;

Result<Fd> openFolder(const std::string& path) {
  return sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

FrontEnd::FrontEnd(boost::asio::io_context& io, Plan plan, OnEnd onEnd)
    : io_(io), plan_(std::move(plan)), onEnd_(std::move(onEnd)) {
  plan_.startup.endNote = file(kEnd);
}

std::shared_ptr<FrontEnd> FrontEnd::make(boost::asio::io_context& io, Plan plan, OnEnd onEnd) {
  return std::shared_ptr<FrontEnd>(new FrontEnd(io, std::move(plan), std::move(onEnd)));
}

Result<> FrontEnd::listen() {
  CAY_ASSIGN(const Fd folder, openFolder(plan_.folder));
  (void)sys::unlinkAt(folder.get(), kSocket);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failSys("socket", errno);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through /proc, since the path of the folder may be longer than an address can be.
  std::snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder.get(),
                kSocket);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failSys("bind of a server's socket", errno);
  }
  if (::listen(socket.get(), kBacklog) != 0) return failSys("listen", errno);
  listener_ = std::move(socket);
  return {};
}

Result<> FrontEnd::start() {
  (void)sys::unlinkAt(AT_FDCWD, file(kEnd).c_str());
  CAY_TRY(listen());
  return launch();
}

Result<> FrontEnd::adopt() {
  CAY_ASSIGN(const Fd folder, openFolder(plan_.folder));
  auto mark = sandbox::KeeperMark::load(folder.get(), kMark);
  if (!mark) {
    CAY_TRY(listen());
    return launch();
  }
  // Whether it lives shows in time; till then it is the one that listens.
  mark_ = *mark;
  serving_ = true;
  boost::asio::co_spawn(io_, awaitOther(shared_from_this(), *mark), boost::asio::detached);
  return {};
}

Result<> FrontEnd::launch() {
  CAY_ASSIGN(const Fd folder, openFolder(plan_.folder));
  CAY_ASSIGN(const Fd log, sys::openAt(folder.get(), kLog,
                                       O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, kOwnerOnly));
  CAY_ASSIGN(const Fd config, sys::memoryFile("cay-host", host::startupText(plan_.startup)));
  CAY_ASSIGN(sys::Pipe ready, sys::makePipe());
  // Where networks belong to a user namespace it begins there, steps down by itself, and can be
  // looked at by us ever after.
  Fd users;
  if (plan_.network != nullptr) {
    CAY_ASSIGN(users, sys::ownerBelow(*plan_.network));
  }
  std::vector<int> groups;
  for (const Fd& group : plan_.groups) groups.push_back(group.get());
  CAY_ASSIGN(sys::Born born,
             startChild({.program = plan_.program,
                         .arguments = {"--config-fd", "3", "--listen-fd", "4", "--ready-fd", "5"},
                         .environment = {},
                         .descriptors = {-1, -1, log.get(), config.get(), listener_.get(),
                                         ready.write.get()},
                         .users = users.get(),
                         .network = plan_.inNetwork ? plan_.network->get() : -1,
                         .groups = std::move(groups)}));
  ready.write.reset();
  auto mark = sandbox::KeeperMark::of(born.pidfd);
  auto saved = mark ? mark->save(folder.get(), kMark) : Result<>(std::unexpected(mark.error()));
  if (!saved) (void)sys::pidfdSignal(born.pidfd, SIGKILL);
  if (mark) mark_ = *mark;
  ++launches_;
  boost::asio::co_spawn(io_, awaitReady(shared_from_this(), std::move(ready.read), launches_),
                        boost::asio::detached);
  boost::asio::co_spawn(io_, awaitChild(shared_from_this(), std::move(born.pidfd)),
                        boost::asio::detached);
  return saved;
}

net::Task<> FrontEnd::awaitReady(std::shared_ptr<FrontEnd> self, Fd pipe, uint64_t launch) {
  const Fd told = co_await net::readable(std::move(pipe));
  char byte = 0;
  if (self->launches_ != launch || ::read(told.get(), &byte, 1) != 1) co_return;
  self->serving_ = true;
  self->failures_ = 0;
  self->changed_.notifyAll();
}

net::Task<> FrontEnd::awaitChild(std::shared_ptr<FrontEnd> self, Fd process) {
  const int status = co_await childEnded(std::move(process));
  self->onDeath(status);
}

net::Task<> FrontEnd::awaitOther(std::shared_ptr<FrontEnd> self, sandbox::KeeperMark mark) {
  co_await mark.ended();
  self->onDeath(0);
}

void FrontEnd::onDeath(int status) {
  mark_.reset();
  if (over_) {
    changed_.notifyAll();
    return;
  }
  if (const auto note = sys::readFile(file(kEnd).c_str())) {
    const auto parsed = host::parseEndNote(*note);
    if (parsed) return finish(parsed->why, parsed->message);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitWrong) {
    return finish(std::nullopt, "cay-host does not take its settings: " + lastWords());
  }
  if (++failures_ > kMostFailures) {
    return finish(std::nullopt, "cay-host does not come up: " + lastWords());
  }
  log(Level::kWarn, "cay-host has died and is started again",
      {{"folder", plan_.folder}, {"failures", int64_t{failures_}}});
  boost::asio::co_spawn(io_, launchAgain(shared_from_this()), boost::asio::detached);
}

net::Task<> FrontEnd::launchAgain(std::shared_ptr<FrontEnd> self) {
  // At once the first time.
  if (self->failures_ > 1) {
    const auto doubled = kFirstDelay * (1U << std::min(self->failures_ - 2, 8U));
    co_await net::sleepFor(std::min<Millis>(doubled, kLongestDelay));
  }
  if (self->over_) co_return;
  // Of an earlier process: its listener went with the one that died.
  Result<> again = self->listener_.valid() ? Result<>() : self->listen();
  if (again) again = self->launch();
  if (!again && !self->mark_) self->finish(std::nullopt, again.error().message);
}

void FrontEnd::finish(std::optional<host::End> end, std::string why) {
  if (over_) return;
  over_ = true;
  serving_ = false;
  changed_.notifyAll();
  if (onEnd_) std::exchange(onEnd_, {})(end, std::move(why));
}

std::string FrontEnd::lastWords() const {
  const auto text = sys::readFile(file(kLog).c_str(), 8 << 20);
  std::string_view last;
  for (const std::string_view line : split(text ? *text : std::string_view(), '\n')) {
    if (!trim(line).empty()) last = trim(line);
  }
  return toValidUtf8(last.substr(0, kMostWords));
}

net::Task<bool> FrontEnd::serving(Millis limit) {
  const auto self = shared_from_this();
  const int64_t until = monotonicMs() + limit.count();
  while (!serving_ && !over_) {
    const int64_t left = until - monotonicMs();
    if (left <= 0) co_return false;
    co_await changed_.wait(Millis(left));
  }
  co_return serving_;
}

net::Task<Result<net::Stream>> FrontEnd::dial() {
  const auto self = shared_from_this();
  Result<Fd> connected = fail(Code::kGone, "the sandbox is over");
  for (int i = 0; i < kConnectTries && !over_; ++i) {
    auto path = sys::openAt(AT_FDCWD, file(kSocket).c_str(), O_PATH | O_NOFOLLOW);
    connected =
        path ? sys::connectUnix(path->get()) : Result<Fd>(std::unexpected(std::move(path).error()));
    if (connected) break;
    // Its queue is full, or nobody has made its socket anew yet.
    co_await net::sleepFor(kConnectRetry);
  }
  if (!connected) {
    co_return fail(over_ ? Code::kGone : Code::kUnreachable,
                   "the sandbox's server does not answer: " + connected.error().message);
  }
  co_return net::Stream{.socket = net::Socket(co_await boost::asio::this_coro::executor,
                                              boost::asio::generic::stream_protocol(AF_UNIX, 0),
                                              connected->release()),
                        .buffered = {}};
}

void FrontEnd::abandon() {
  over_ = true;
  serving_ = false;
  onEnd_ = {};
  changed_.notifyAll();
}

net::Task<> FrontEnd::stop() {
  const auto self = shared_from_this();
  abandon();
  if (mark_) {
    const sandbox::KeeperMark mark = *mark_;
    co_await mark.kill();
  }
  (void)sys::unlinkAt(AT_FDCWD, file(kMark).c_str());
  (void)sys::unlinkAt(AT_FDCWD, file(kSocket).c_str());
}

net::Task<> FrontEnd::killLeft(std::string folder) {
  const auto opened = openFolder(folder);
  if (!opened) co_return;
  const auto mark = sandbox::KeeperMark::load(opened->get(), kMark);
  if (mark) co_await mark->kill();
  (void)sys::unlinkAt(opened->get(), kMark);
}

std::vector<sandbox::KeeperMark> FrontEnd::unmarked(const std::string& jobs) {
  std::vector<sandbox::KeeperMark> out;
  const auto proc = sys::openAt(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
  const auto entries = proc ? sys::readDirectory(proc->get())
                            : Result<std::vector<sys::DirEntry>>(std::vector<sys::DirEntry>());
  if (!entries) return out;
  for (const sys::DirEntry& entry : *entries) {
    const auto pid = parseUint(entry.name);
    if (!pid) continue;
    const auto pidfd = sys::pidfdOpen(static_cast<pid_t>(*pid));
    const auto log = sys::readLinkAt(proc->get(), (entry.name + "/fd/2").c_str());
    if (!pidfd || !log || !log->starts_with(jobs + "/") ||
        !log->ends_with(std::string("/") + kLog)) {
      continue;
    }
    const auto found = sandbox::KeeperMark::of(*pidfd);
    const auto folder = openFolder(log->substr(0, log->rfind('/')));
    const auto marked = folder ? sandbox::KeeperMark::load(folder->get(), kMark)
                               : Result<sandbox::KeeperMark>(std::unexpected(folder.error()));
    if (found && (!marked || *marked != *found)) out.push_back(*found);
  }
  return out;
}

}  // namespace cay::engine
