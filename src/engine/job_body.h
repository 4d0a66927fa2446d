// What runs in a job, by its kind. The rest is the same for all (local_job.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "engine/job.h"
#include "engine/job_folder.h"
#include "engine/job_house.h"
#include "engine/job_words.h"
#include "net/stream.h"
#include "net/task.h"
#include "sandbox/pooled.h"

namespace cay::engine {

// What a body stands on. Outlives it.
struct JobGround {
  JobHouse& house;
  const JobSpec& spec;
  const JobFolder& folder;
  const JobNetwork& network;
  const JobState& state;
  sandbox::PooledPtr pooled;  // its folder, its slot, and its walls

  // Of the job's time; 0: it has no end.
  [[nodiscard]] int64_t timeLeftMs() const;
};

// How many sandboxes a pool may have at a time.
uint32_t poolCapacity(const JobSpec& spec);

class JobBody {
 public:
  virtual ~JobBody() = default;

  // Completes when it runs, or, with an error, when it never will.
  virtual net::Task<Result<>> start() = 0;
  // Takes up what an earlier process started. kGone if that was not finished.
  virtual Result<> adopt() = 0;
  // Completes when it has ended by itself, or after interrupt().
  virtual net::Task<Outcome> ended() = 0;
  // start() and ended() are to come to an end soon, since nobody needs it any more.
  virtual void interrupt() = 0;
  // Completes when nothing of it runs any more. Its folder is gone then, but for what it wrote.
  virtual net::Task<> stop() = 0;

  // Its exit code, once it has ended.
  [[nodiscard]] virtual std::optional<int> exitCode() const { return std::nullopt; }
  // A server of sandboxes, which is what the port kSandboxPort is.
  [[nodiscard]] virtual bool serves() const { return false; }
  virtual net::Task<Result<net::Stream>> dialServer();
};

std::unique_ptr<JobBody> makePlainBody(const JobGround& ground);
std::unique_ptr<JobBody> makeDedicatedBody(const JobGround& ground);
std::unique_ptr<JobBody> makePoolBody(const JobGround& ground);
std::unique_ptr<JobBody> makeBody(const JobGround& ground);

}  // namespace cay::engine
