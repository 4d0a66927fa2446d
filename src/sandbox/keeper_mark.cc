#include "sandbox/keeper_mark.h"

#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <csignal>

#include "base/text.h"
#include "net/await.h"
#include "net/event.h"
#include "sys/io.h"
#include "sys/process.h"

namespace cay::sandbox {
namespace {

constexpr Millis kBeforeRetry{20};

}  // namespace

Result<KeeperMark> KeeperMark::of(const Fd& pidfd) {
  CAY_ASSIGN(const std::string info,
             sys::readFile(("/proc/self/fdinfo/" + std::to_string(pidfd.get())).c_str()));
  constexpr std::string_view kPid = "\nPid:\t";
  const size_t at = info.find(kPid);
  if (at == std::string::npos) return fail(Code::kInternal, "not a descriptor of a process");
  const size_t from = at + kPid.size();
  const auto pid = parseUint(std::string_view(info).substr(from, info.find('\n', from) - from));
  if (!pid || *pid == 0) return fail(Code::kNotFound, "the process has ended");
  CAY_ASSIGN(const uint64_t born, sys::processStart(static_cast<pid_t>(*pid)));
  return KeeperMark(static_cast<pid_t>(*pid), born);
}

Result<Fd> KeeperMark::open() const {
  CAY_ASSIGN(Fd pidfd, sys::pidfdOpen(pid_));
  // Looked at after it was opened: what the descriptor stands for cannot change any more.
  CAY_ASSIGN(const uint64_t born, sys::processStart(pid_));
  if (born != born_) return fail(Code::kNotFound, "the process has ended");
  return pidfd;
}

net::Task<> KeeperMark::awaitEnd(int signalFirst) const {
  using Descriptor = boost::asio::posix::basic_stream_descriptor<net::Executor>;
  Result<Fd> pidfd = open();
  // Without descriptors to look at it, it must not pass for dead.
  while (!pidfd && pidfd.error().code != Code::kNotFound) {
    co_await net::sleepFor(kBeforeRetry);
    pidfd = open();
  }
  if (!pidfd) co_return;
  if (signalFirst != 0) (void)sys::pidfdSignal(*pidfd, signalFirst);
  Descriptor descriptor(co_await boost::asio::this_coro::executor, pidfd->release());
  (void)co_await descriptor.async_wait(Descriptor::wait_read, net::kAwait);
}

net::Task<> KeeperMark::ended() const {
  return awaitEnd(0);
}

net::Task<> KeeperMark::kill() const {
  return awaitEnd(SIGKILL);
}

}  // namespace cay::sandbox
