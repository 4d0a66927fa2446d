#include "sandbox/exec.h"

namespace cay::sandbox {

std::string_view causeName(Cause cause) {
  switch (cause) {
    case Cause::kExited:
      return "exited";
    case Cause::kSignaled:
      return "signaled";
    case Cause::kTimedOut:
      return "timed_out";
    case Cause::kOom:
      return "oom";
    case Cause::kKilled:
      return "killed";
    case Cause::kDisconnected:
      return "disconnected";
    case Cause::kStartFailed:
      return "start_failed";
    case Cause::kHostStopped:
      return "host_stopped";
    case Cause::kHostLost:
      return "host_lost";
  }
  return "unknown";
}

std::string_view streamName(StreamId stream) {
  return stream == kStdout ? "stdout" : "stderr";
}

std::vector<std::string_view> limitNames(uint8_t limits) {
  std::vector<std::string_view> out;
  if ((limits & kLimitMemory) != 0) out.emplace_back("memory");
  if ((limits & kLimitPids) != 0) out.emplace_back("pids");
  if ((limits & kLimitDisk) != 0) out.emplace_back("disk");
  return out;
}

}  // namespace cay::sandbox
