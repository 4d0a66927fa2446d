// What a job writes, as a stream of events: from its first line, or from the last few, to its last.
#pragma once

#include "hub/api_call.h"

namespace cay::hub {

// Stays open while the job waits and runs, however silent it is, since clients take an earlier end
// for the end of the job. The same lines come again, equal to the letter, when a client asks again.
net::Task<Result<>> streamLogs(ApiCall& call);

}  // namespace cay::hub
