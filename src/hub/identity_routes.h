// Who somebody is, how the hub is, and what clients ask about themselves.
#pragma once

#include "hub/api_call.h"

namespace cay::hub {

net::Task<Result<>> answerWhoami(ApiCall& call);
// Which agents a client may say that it is run by: none that this hub would note.
net::Task<Result<>> answerHarnesses(ApiCall& call);
// For this machine alone.
net::Task<Result<>> answerHealth(ApiCall& call);

}  // namespace cay::hub
