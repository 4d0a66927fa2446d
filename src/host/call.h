// One request on its way to a route: what every route function receives.
#pragma once

#include <string>
#include <string_view>

#include "net/handler.h"
#include "net/http.h"

namespace cay::host {

// A route function is `net::Task<Result<>> name(Call& call, ...)`. It either answers through
// call.response, or returns an Error before response.begin(), which the router answers as {"error":
// …} with the status of its code. An Error after begin() cuts the connection.
struct Call {
  const net::RequestHead& head;
  net::Body& body;
  net::Response& response;
  std::string_view path;  // below the sandbox's prefix, still percent-encoded, e.g. "/files/read"
  net::Query query;       // empty below /proxy, where it is not ours to understand
  std::string allowed;    // the methods of the route, once a wrong one has been refused
};

}  // namespace cay::host
