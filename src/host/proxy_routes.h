// ANY /proxy/{port}/{path…}: a server inside the sandbox, seen from outside.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "host/call.h"
#include "net/dialer.h"
#include "net/task.h"

namespace cay::host {

// One request, one inner connection. Both messages are parsed and written anew, so nothing but this
// request can reach the inner server; only after both sides have agreed on another protocol (101)
// are bytes copied blindly. Ends when the client goes. `ownPort` is refused (403): it would be a
// loop.
net::Task<Result<>> proxy(Call& call, net::Dialer& dialer, uint16_t ownPort);

}  // namespace cay::host
