#include "sandbox/keeper_mark.h"

#include <csignal>

#include "base/text.h"
#include "net/event.h"
#include "net/readable.h"
#include "sys/boot.h"
#include "sys/io.h"
#include "sys/process.h"
#include "sys/replace_file.h"

namespace cay::sandbox {
namespace {

constexpr Millis kBeforeRetry{20};
constexpr uint64_t kMostPids = 1 << 22;
constexpr uint64_t kNeverBorn = UINT64_MAX;

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

Result<> KeeperMark::save(int directory, const std::string& path) const {
  CAY_ASSIGN(const std::string boot, sys::bootId());
  const std::string text = boot + " " + std::to_string(pid_) + " " + std::to_string(born_) + "\n";
  return sys::replaceFileAt(directory, path, text);
}

Result<KeeperMark> KeeperMark::load(int directory, const std::string& path) {
  CAY_ASSIGN(const std::string text, sys::readFileAt(directory, path.c_str()));
  CAY_ASSIGN(const std::string boot, sys::bootId());
  const auto fields = words(text);
  const auto pid = fields.size() == 3 ? parseUint(fields[1]) : std::nullopt;
  const auto born = fields.size() == 3 ? parseUint(fields[2]) : std::nullopt;
  if (!pid || !born || *pid == 0 || *pid > kMostPids) {
    return fail(Code::kNotFound, "the keeper's mark is broken");
  }
  // Of an earlier boot: a process that has ended, as nothing is born at that time.
  if (fields[0] != boot) return KeeperMark(static_cast<pid_t>(*pid), kNeverBorn);
  return KeeperMark(static_cast<pid_t>(*pid), *born);
}

Result<Fd> KeeperMark::open() const {
  CAY_ASSIGN(Fd pidfd, sys::pidfdOpen(pid_));
  // Looked at after it was opened: what the descriptor stands for cannot change any more.
  CAY_ASSIGN(const uint64_t born, sys::processStart(pid_));
  if (born != born_) return fail(Code::kNotFound, "the process has ended");
  return pidfd;
}

net::Task<> KeeperMark::awaitEnd(int signalFirst) const {
  Result<Fd> pidfd = open();
  // Without descriptors to look at it, it must not pass for dead.
  while (!pidfd && pidfd.error().code != Code::kNotFound) {
    co_await net::sleepFor(kBeforeRetry);
    pidfd = open();
  }
  if (!pidfd) co_return;
  if (signalFirst != 0) (void)sys::pidfdSignal(*pidfd, signalFirst);
  (void)co_await net::readable(*std::move(pidfd));
}

net::Task<> KeeperMark::ended() const {
  return awaitEnd(0);
}

net::Task<> KeeperMark::kill() const {
  return awaitEnd(SIGKILL);
}

}  // namespace cay::sandbox
