// What of a message may pass from one connection to another. Pure text rules, no I/O.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "net/http.h"

namespace cay::net {

// A request as the server behind us is to see it.
struct Onward {
  std::string server;                 // its name in messages, such as "port 8080"
  std::string target;                 // percent-encoding untouched
  std::string host;                   // where the request has no Host field that may pass
  std::vector<std::string> withheld;  // fields and trailers that are not for it
  Fields added;
  // Changes the answer's head before the client sees it; none: as it is.
  std::function<void(ResponseHead&)> amend = nullptr;
};

// True if the client wants another protocol on this connection and may have it.
bool wantsUpgrade(const RequestHead& head);

// The request's fields for the inner server: nothing that concerns only the client's own
// connection, no framing. A Connection field is added.
Fields innerRequestFields(const RequestHead& head, const Onward& onward, bool upgrade);
Fields innerTrailers(const Fields& trailers, const Onward& onward);

// The answer's fields for the client. A Content-Length stays where it is true.
Fields outerResponseFields(const ResponseHead& head, Framing framing);

}  // namespace cay::net
