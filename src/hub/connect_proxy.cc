#include "hub/connect_proxy.h"

#include <utility>

#include "base/text.h"
#include "hub/api_error.h"
#include "hub/credentials.h"
#include "net/relay.h"
#include "net/status.h"

namespace cay::hub {
namespace {

constexpr uint16_t kHttpsPort = 443;

net::Task<> refuse(net::Response& response, int status, std::string message) {
  (void)co_await sendApiError(response,
                              {.status = status, .message = std::move(message), .field = {}});
}

net::Task<> askForToken(net::Response& response) {
  const std::string message =
      "this proxy needs a token of the hub as its password: eval \"$(cay env)\"";
  net::ResponseHead head{.status = 407, .fields = {}};
  head.fields.add("Content-Type", "application/json");
  head.fields.add("Proxy-Authenticate", "Basic realm=\"cay\"");
  (void)co_await net::send(response, std::move(head), net::errorBody(message));
}

// Counted for as long as it lives.
class Counted {
 public:
  explicit Counted(size_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  size_t& count_;
};

}  // namespace

bool ConnectProxy::isKnown(const net::RequestHead& head) const {
  // Two would leave open whose request it is.
  if (head.fields.count("proxy-authorization") != 1) return false;
  const auto secret = secretIn(*head.fields.get("proxy-authorization"));
  return secret && at_.tokens.check(*secret, wallMs());
}

bool ConnectProxy::isOurs(std::string_view host) const {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::string& domain = at_.address.domain;
  if (host.size() < domain.size()) return false;
  const size_t at = host.size() - domain.size();
  return equalIgnoreCase(host.substr(at), domain) && (at == 0 || host[at - 1] == '.');
}

net::Task<> ConnectProxy::handle(const net::RequestHead& head, net::Response& response) {
  if (!isKnown(head)) {
    at_.reachability.proxyRefused(head.target);
    co_return co_await askForToken(response);
  }
  const size_t colon = head.target.rfind(':');
  std::string host = head.target.substr(0, colon);
  const auto port = static_cast<uint16_t>(*parseUint(head.target.substr(colon + 1)));
  if (isOurs(host)) co_return co_await toOurselves(port, head, response);
  co_await toOther(std::move(host), port, head, response);
}

net::Task<> ConnectProxy::toOurselves(uint16_t port, const net::RequestHead& head,
                                      net::Response& response) {
  if (port != at_.address.tlsPort && port != kHttpsPort) {
    co_return co_await refuse(
        response, 403,
        "names of this hub are served on port " + std::to_string(at_.address.tlsPort) + " alone");
  }
  net::Peer peer = head.peer;
  auto stream = co_await response.tunnel();
  if (stream) at_.tls.admit(*std::move(stream), std::move(peer));
}

net::Task<> ConnectProxy::toOther(std::string host, uint16_t port, const net::RequestHead& head,
                                  net::Response& response) {
  if (!limits_.toOthers) {
    co_return co_await refuse(response, 403, "this hub makes no tunnels to other hosts");
  }
  if (!head.peer.loopback) {
    co_return co_await refuse(response, 403,
                              "tunnels to other hosts are for clients of this machine alone");
  }
  if (tunnels_ >= limits_.most) {
    co_return co_await refuse(response, 503,
                              "there are " + std::to_string(tunnels_) + " tunnels already");
  }
  const Counted counted(tunnels_);
  auto other = co_await at_.outbound.dial(std::move(host), port);
  if (!other) co_return co_await refuse(response, 502, other.error().message);
  auto client = co_await response.tunnel();
  if (client) co_await net::relay(*client, *other, limits_.idle);
}

}  // namespace cay::hub
