// Jobs in the hub's database. Blocking.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hub/rows.h"
#include "hub/sqlite.h"

namespace cay::hub {

// kConflict if there is one of that id or number.
Result<> insertJob(Database& database, const JobRow& row);
// Writes what changes in a job's life: labels, ports, state. kNotFound if it is not there.
Result<> updateJob(Database& database, const JobRow& row);
Result<JobRow> findJob(Database& database, const std::string& id);
// Newest first.
Result<std::vector<JobRow>> listJobs(Database& database, const JobFilter& filter);
// Those that are not over, oldest first.
Result<std::vector<JobRow>> liveJobs(Database& database);
// The highest number that was ever given.
Result<int64_t> lastJobSeq(Database& database);
// Removes ended jobs that ended before a time, and all but the `keep` that ended last; gives their
// ids.
Result<std::vector<std::string>> forgetEndedJobs(Database& database, int64_t beforeMs,
                                                 uint64_t keep);

}  // namespace cay::hub
