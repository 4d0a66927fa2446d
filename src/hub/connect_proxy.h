// CONNECT on the API's port, for clients whose machines do not know the names of our domain, or
// whose proxy we have become. Names of ours end at our own TLS, without being looked up; other
// hosts are tunnelled untouched, for clients of this machine.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "hub/job_info.h"
#include "hub/outbound.h"
#include "hub/reachability.h"
#include "hub/tls_listener.h"
#include "hub/tokens.h"
#include "net/handler.h"
#include "net/task.h"

namespace cay::hub {

struct TunnelLimits {
  bool toOthers = true;           // false: only names of ours
  size_t most = 256;              // tunnels to others
  Millis idle = Millis(600'000);  // without a byte either way
};

class ConnectProxy {
 public:
  // All of it outlives the proxy.
  struct Parts {
    const EdgeAddress& address;
    const Tokens& tokens;
    Reachability& reachability;
    TlsListener& tls;
    Outbound& outbound;
  };
  ConnectProxy(const Parts& parts, const TunnelLimits& limits) : at_(parts), limits_(limits) {}

  // Answers a request of CONNECT. 407 without a good token (of any role), 403 for what is not
  // tunnelled, 502 with the reason if it cannot be reached, 503 if there are too many tunnels.
  net::Task<> handle(const net::RequestHead& head, net::Response& response);

 private:
  [[nodiscard]] bool isKnown(const net::RequestHead& head) const;
  [[nodiscard]] bool isOurs(std::string_view host) const;
  net::Task<> toOurselves(uint16_t port, const net::RequestHead& head, net::Response& response);
  net::Task<> toOther(std::string host, uint16_t port, const net::RequestHead& head,
                      net::Response& response);

  Parts at_;
  TunnelLimits limits_;
  size_t tunnels_ = 0;
};

}  // namespace cay::hub
