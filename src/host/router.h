// From a request to its route: health, errors as JSON, and who may come in. What the routes are is
// the business of DedicatedRouter and PoolRouter.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "host/call.h"
#include "net/handler.h"

namespace cay::host {

class Router : public net::Handler {
 public:
  net::Task<> handle(const net::RequestHead& head, net::Body& body, net::Response& response) final;

 protected:
  // Whether even /health is for this client.
  [[nodiscard]] virtual Result<> admit(const net::RequestHead& head) const = 0;
  // Every request but /health. Errors as of a route function.
  virtual net::Task<Result<>> route(Call& call) = 0;

 private:
  net::Task<Result<>> answer(const net::RequestHead& head, net::Body& body,
                             net::Response& response);
};

// The token that a request carries, if it carries exactly one; empty otherwise.
std::string_view tokenOf(const net::RequestHead& head);
// kDenied, which says whether a token is missing or wrong.
std::unexpected<Error> denied(const net::RequestHead& head);

// True for a Host field that names this machine's loopback.
bool isLoopbackHost(std::string_view host);

}  // namespace cay::host
