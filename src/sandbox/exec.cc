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

}  // namespace cay::sandbox
