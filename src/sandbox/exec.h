// The words of an exec: what is asked for, how it ended, what it used. Plain values, shared by the
// keeper, which runs commands, and by the host, which speaks to clients.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cay::sandbox {

// Why an exec ended. A closed list: clients may switch over it.
enum class Cause : uint8_t {
  kExited,        // by itself, with an exit code
  kSignaled,      // by a signal that did not come from us
  kTimedOut,      // its own time limit
  kOom,           // the kernel killed it for lack of memory
  kKilled,        // a client asked for it
  kDisconnected,  // its client went away
  kStartFailed,   // it never ran; ExitRecord::error says why
  kHostStopped,   // the host was told to stop
  kHostLost,      // its keeper died, so nobody saw its end
};
std::string_view causeName(Cause cause);

enum class Kind : uint8_t { kExec, kProcess };

// What happens to an exec that nobody listens to any more.
enum class OnDisconnect : uint8_t {
  kKill,       // end it
  kKeepShort,  // end it unless somebody attaches within kKeepShortMs
  kKeep,       // let it run
};
inline constexpr int64_t kKeepShortMs = 60'000;

enum class Stdin : uint8_t { kNull, kOpenPipe, kData };

enum StreamId : uint8_t { kStdout = 0, kStderr = 1 };
inline constexpr int kStreams = 2;
std::string_view streamName(StreamId stream);

struct ExecSpec {
  std::string id;
  Kind kind = Kind::kExec;
  std::vector<std::string> argv;
  std::vector<std::string> env;  // whole environment, NAME=value
  std::string cwd;
  int64_t timeoutMs = 0;  // 0: none
  OnDisconnect onDisconnect = OnDisconnect::kKill;
  Stdin stdinMode = Stdin::kNull;
  std::string stdinData;  // with Stdin::kData; travels beside the rest
  // The file for its output. With `overwrite` it is that of an older record that nobody needs any
  // more: files that come and go make ext4 slow, since it searches past every inode freed in the
  // last minutes.
  std::string file;
  bool overwrite = false;
  // For the host alone; the keeper stores it with the output, so that a restarted host finds it
  // again.
  std::string meta;
  // The output goes to the sandbox's log of lines as well (line_log.h). One command at a time.
  bool lines = false;
};

struct Usage {
  uint64_t userMs = 0;
  uint64_t systemMs = 0;
  uint64_t maxRssBytes = 0;
  uint64_t readBytes = 0;
  uint64_t writeBytes = 0;
};

// Limits of the sandbox that were run into while an exec ran, as a set of bits.
enum Limit : uint8_t { kLimitMemory = 1, kLimitPids = 2, kLimitDisk = 4 };
std::vector<std::string_view> limitNames(uint8_t limits);

struct ExitRecord {
  Cause cause = Cause::kExited;
  std::optional<int> exitCode;
  std::optional<int> signal;
  int32_t pid = 0;  // it had; 0 if it never ran
  int64_t durationMs = 0;
  Usage usage;
  uint64_t outputBytes[kStreams] = {0, 0};
  std::string error;  // with Cause::kStartFailed
  uint8_t limitsHit = 0;
};

// How far into each stream something reaches, in bytes.
struct Offsets {
  uint64_t at[kStreams] = {0, 0};
};
inline constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// How long after the command's own exit its pipes are listened to before the exit is announced,
// when something it left behind still holds them.
inline constexpr int64_t kPipeGraceMs = 100;

}  // namespace cay::sandbox
