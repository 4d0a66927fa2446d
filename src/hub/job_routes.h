// Jobs by the API: make, find, change and end them.
#pragma once

#include "hub/api_call.h"

namespace cay::hub {

net::Task<Result<>> createJob(ApiCall& call);
net::Task<Result<>> listJobs(ApiCall& call);
// Counts for whoever wonders whether clients reach their jobs.
net::Task<Result<>> inspectJob(ApiCall& call);
// Answers when nothing of the job runs any more; does nothing to one that is over.
net::Task<Result<>> cancelJob(ApiCall& call);
net::Task<Result<>> labelJob(ApiCall& call);
net::Task<Result<>> exposeJob(ApiCall& call);
net::Task<Result<>> duplicateJob(ApiCall& call);

// The job in the path. kNotFound if it is not in that namespace, wherever else it may be.
net::Task<Result<JobPtr>> jobOf(ApiCall& call);
net::Task<Result<>> answerJob(ApiCall& call, const JobRow& row);

}  // namespace cay::hub
