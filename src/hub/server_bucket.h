// The bucket in which clients look for the server of sandboxes: here it is cay-host. And what is
// said to those who want to put files into buckets.
#pragma once

#include "hub/api_call.h"

namespace cay::hub {

// Without a token, since the job itself asks.
net::Task<Result<>> sendServer(ApiCall& call);
// 501, with the folder that can be used instead.
net::Task<Result<>> refuseUploads(ApiCall& call);

}  // namespace cay::hub
