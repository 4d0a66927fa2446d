// Where jobs run, as the hub knows it. The first engine is this machine; Slurm, Kubernetes and HF
// Jobs are to be others.
//
// An engine keeps its own record of its jobs, so that a hub that was killed finds them again.
// Stages only ever move forward. On the loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "engine/job.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::engine {

class Flavors;

struct LogEvent {
  int64_t timeUs = 0;  // unique and rising within a job
  std::string text;    // one line, valid UTF-8
};

class LogStream {
 public:
  virtual ~LogStream() = default;
  // The next line; nullopt when all there is has been read: changed() tells of more. After the
  // job's end nullopt means that there will be none.
  virtual net::Task<Result<std::optional<LogEvent>>> next() = 0;
  // Completes when there may be more; false if `limit` passed first.
  virtual net::Task<bool> changed(Millis limit) = 0;
};

class Watcher {
 public:
  virtual ~Watcher() = default;
  // Called for every change, before anybody who waits for it is woken: what it notes is what a
  // client sees next.
  virtual void changed(const std::string& id, const Status& status) = 0;
};

class Engine {
 public:
  virtual ~Engine() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // Takes up what an earlier process left, and reports each job once. `known` are those that are
  // not over for the hub; of which the engine has no trace, those end as ERROR. What it has and the
  // hub does not know is removed.
  virtual net::Task<Result<>> open(std::vector<JobSpec> known, Watcher& watcher) = 0;

  // Completes when the job is accepted for good. kInvalid, with the reason, if it can never run
  // here; kExhausted if it cannot be taken now.
  virtual net::Task<Result<>> submit(JobSpec spec) = 0;
  // kNotFound for what it never had or has forgotten.
  [[nodiscard]] virtual Result<Status> inspect(std::string_view id) const = 0;
  // Those that have all of these labels, oldest first; ended ones as long as they are kept.
  [[nodiscard]] virtual std::vector<std::string> list(const Pairs& labels) const = 0;
  // Ends it as `stage`, with `why` as the message; does nothing to one that has ended. The stage is
  // told at once; completes when nothing of the job runs any more.
  virtual net::Task<Result<>> end(std::string id, Stage stage, std::string why) = 0;
  // From the first line, or from the last `tail` ones.
  virtual net::Task<Result<std::unique_ptr<LogStream>>> logs(std::string id,
                                                             std::optional<uint64_t> tail) = 0;
  // A connection to a port of the job; kSandboxPort of a sandbox is its cay-host. kUnreachable if
  // nothing listens, kGone after its end.
  virtual net::Task<Result<net::Stream>> dial(std::string id, uint16_t port) = 0;
  virtual net::Task<Result<Usage>> usage(std::string id) = 0;
  virtual void relabel(std::string_view id, Pairs labels) = 0;
  // Forgets an ended job with its logs.
  virtual net::Task<Result<>> forget(std::string id) = 0;

  // What can be asked for here.
  [[nodiscard]] virtual const Flavors& flavors() const = 0;

  enum class Jobs : uint8_t { kKeep, kEnd };
  virtual net::Task<> shutdown(Jobs jobs) = 0;
};

inline constexpr uint16_t kSandboxPort = 49983;

}  // namespace cay::engine
