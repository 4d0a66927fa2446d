// Scheduled jobs by the API.
#pragma once

#include "hub/api_call.h"

namespace cay::hub {

net::Task<Result<>> createSchedule(ApiCall& call);
net::Task<Result<>> listSchedules(ApiCall& call);
net::Task<Result<>> inspectSchedule(ApiCall& call);
net::Task<Result<>> deleteSchedule(ApiCall& call);
net::Task<Result<>> suspendSchedule(ApiCall& call);
net::Task<Result<>> resumeSchedule(ApiCall& call);
// Starts a job of it now, and answers with that.
net::Task<Result<>> runSchedule(ApiCall& call);
net::Task<Result<>> reschedule(ApiCall& call);
net::Task<Result<>> labelSchedule(ApiCall& call);

}  // namespace cay::hub
