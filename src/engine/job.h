// A job as engines and the hub speak of it: plain values, no HTTP, no SQL.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cay::engine {

using Pairs = std::vector<std::pair<std::string, std::string>>;

enum class Kind : uint8_t {
  kPlain,      // its command runs as given
  kDedicated,  // one sandbox: cay-host serves it instead of the command
  kPool,       // a host of sandboxes: cay-host in host mode
};

struct VolumeRef {
  enum class Type : uint8_t { kBucket, kModel, kDataset, kSpace };

  Type type = Type::kBucket;
  std::string source;     // "namespace/name"
  std::string at;         // absolute path inside
  std::string path;       // below the source; empty: all of it
  std::string revision;   // empty: main
  bool readOnly = false;  // models, datasets and spaces always are
  bool operator==(const VolumeRef&) const = default;
};

// What a job may use. 0: no limit of its own.
struct Resources {
  uint32_t milliCpus = 0;  // a ceiling, and never a reason to wait
  uint64_t memoryBytes = 0;
  uint64_t diskBytes = 0;
  uint64_t pids = 0;
  uint32_t gpus = 0;
  bool operator==(const Resources&) const = default;
};

// Of the cay-host that serves a sandbox or a pool.
struct SandboxServer {
  std::string token;
  bool compatHostToken = false;
  int64_t idleTimeoutMs = 0;  // 0: never
  uint32_t capacity = 0;      // of a pool
  bool operator==(const SandboxServer&) const = default;
};

struct JobSpec {
  std::string id;  // letters and digits; never used again
  std::string ns;
  Kind kind = Kind::kPlain;
  std::string image;  // as named by the client, or "space:<id>"
  std::vector<std::string> command;
  Pairs env;
  Pairs secrets;  // only ever in the environment of the job's processes
  Pairs labels;
  Resources resources;
  std::string flavor;
  int64_t timeoutMs = 0;   // 0: none
  int64_t deadlineMs = 0;  // wall clock: it must have started by then; 0: none
  uint32_t attempts = 1;
  std::string group;      // network group, unique among namespaces; empty: alone
  std::string groupName;  // as the client named it
  std::vector<std::string> aliases;
  std::vector<VolumeRef> volumes;
  SandboxServer server;  // of kDedicated and kPool
  bool operator==(const JobSpec&) const = default;
};

// In the order in which a job goes through them: it never goes back.
enum class Stage : uint8_t { kScheduling, kRunning, kCompleted, kError, kCanceled };

// As clients know them: "SCHEDULING".
std::string_view stageName(Stage stage);
std::optional<Stage> stageOf(std::string_view name);
constexpr bool isTerminal(Stage stage) {
  return stage >= Stage::kCompleted;
}
// SCHEDULING may go anywhere, RUNNING to an end, an end nowhere.
constexpr bool mayFollow(Stage from, Stage to) {
  return !isTerminal(from) && to > from;
}

struct Status {
  Stage stage = Stage::kScheduling;
  std::string message;      // for people: why it waits, why it failed
  bool serving = false;     // a sandbox's server answers; only while it runs
  int64_t startedAtMs = 0;  // wall clock; 0: not yet
  int64_t finishedAtMs = 0;
  std::optional<int> exitCode;
  uint32_t attempt = 1;
  std::string image;               // what it really runs, such as "host (alias of python:3.12)"
  std::vector<std::string> notes;  // what is weaker or different here
  bool operator==(const Status&) const = default;
};

struct Usage {
  uint64_t cpuMs = 0;  // of its whole life
  uint64_t memoryBytes = 0;
  uint64_t memoryLimit = 0;
  uint32_t milliCpus = 0;
  uint64_t receivedBytes = 0;
  uint64_t sentBytes = 0;
};

}  // namespace cay::engine
