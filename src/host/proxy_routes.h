// ANY /proxy/{port}/{path…}: a server inside the sandbox, seen from outside.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "host/call.h"
#include "net/dialer.h"
#include "net/http.h"
#include "net/task.h"

namespace cay::host {

struct ProxyTarget {
  uint16_t port = 0;
  std::string target;  // for the inner server, percent-encoding untouched
};
// From "/proxy/8080/x" and the request it came with. kInvalid if the port is none.
Result<ProxyTarget> proxyTarget(std::string_view path, const net::RequestHead& head);

// Passes the request on (net/passage.h), without what opens this sandbox. `ownPort` is refused
// (403): it would be a loop.
net::Task<Result<>> proxy(Call& call, net::Dialer& dialer, uint16_t ownPort);

}  // namespace cay::host
