// The hub's journal: what must survive it. SQLite on a thread of its own; writes that wait together
// are committed together. A Task completes when its change is committed: from then on it survives a
// kill of this process.
//
// kExhausted with ENOSPC when the disk is full: nothing that was committed is lost, and later calls
// may succeed. On the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hub/identity_rows.h"
#include "hub/rows.h"
#include "hub/sqlite.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::hub {

// Must be destroyed before the loop. What was not committed by then never happened.
class Store {
 public:
  // Makes or upgrades the file (schema.h); kConflict if it is of a newer program.
  static net::Task<Result<std::unique_ptr<Store>>> open(std::string file);

  struct Snapshot {
    Identities identities;
    std::vector<JobRow> live;  // jobs that are not over, oldest first
    std::vector<ScheduleRow> schedules;
    int64_t lastSeq = 0;
  };
  net::Task<Result<Snapshot>> load();

  net::Task<Result<>> insert(JobRow row);
  net::Task<Result<>> update(JobRow row);
  net::Task<Result<JobRow>> job(std::string id);
  net::Task<Result<std::vector<JobRow>>> list(JobFilter filter);
  net::Task<Result<std::vector<std::string>>> forgetEnded(int64_t beforeMs, uint64_t keep);

  net::Task<Result<>> insert(PrincipalRow row);
  net::Task<Result<>> insert(TokenRow row);
  net::Task<Result<>> tokenUsed(std::string id, int64_t nowMs);
  // If another process (`cay token`) has written since the last call, what there is now.
  net::Task<Result<std::optional<Identities>>> foreignChange();

  net::Task<Result<>> put(ScheduleRow row);
  net::Task<Result<>> removeSchedule(std::string id);

 private:
  using Act = std::function<Result<>(Database&)>;
  struct Write {
    Act act;
    Result<> result;
  };

  Store() = default;
  net::Task<Result<>> write(Act act);
  // On the thread.
  void commitWaiting();
  Result<> commitAll(const std::vector<Write*>& writes);

  std::optional<Database> database_;
  int64_t seenVersion_ = 0;
  std::mutex mutex_;
  std::vector<Write*> waiting_;  // guarded by mutex_
  // Last, so that it ends first: what it runs uses all of the above.
  net::WorkerPool thread_{1};
};

}  // namespace cay::hub
