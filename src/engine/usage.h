// What a job uses, as clients ask for it while it runs.
#pragma once

#include "base/error.h"
#include "engine/job.h"
#include "engine/job_body.h"
#include "net/task.h"

namespace cay::engine {

// Of one that has its network and its folder.
net::Task<Result<Usage>> usageOf(const JobGround& ground);

}  // namespace cay::engine
