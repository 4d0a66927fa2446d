// What of a message may pass the port proxy. Pure text rules, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/http.h"

namespace cay::host {

struct ProxyTarget {
  uint16_t port = 0;
  std::string target;  // for the inner server, percent-encoding untouched
};
// From "/proxy/8080/x" and the request it came with. kInvalid if the port is none.
Result<ProxyTarget> proxyTarget(std::string_view path, const net::RequestHead& head);

// True if the client wants another protocol on this connection and may have it.
bool wantsUpgrade(const net::RequestHead& head);

// The request's fields for the inner server: no credentials of ours, nothing that concerns only the
// client's own connection, no framing. A Connection field is added.
net::Fields innerRequestFields(const net::RequestHead& head, uint16_t port, bool upgrade);
net::Fields innerTrailers(const net::Fields& trailers);

// The answer's fields for the client. A Content-Length stays where it is true.
net::Fields outerResponseFields(const net::ResponseHead& head, net::Framing framing);

}  // namespace cay::host
