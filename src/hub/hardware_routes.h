// What can be asked for on this machine.
#pragma once

#include "hub/api_call.h"

namespace cay::hub {

net::Task<Result<>> listHardware(ApiCall& call);

}  // namespace cay::hub
