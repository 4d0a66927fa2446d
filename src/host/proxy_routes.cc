#include "host/proxy_routes.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "base/text.h"
#include "net/passage.h"

namespace cay::host {

Result<ProxyTarget> proxyTarget(std::string_view path, const net::RequestHead& head) {
  constexpr std::string_view kPrefix = "/proxy/";
  const std::string_view rest = path.starts_with(kPrefix) ? path.substr(kPrefix.size()) : "";
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view digits = rest.substr(0, slash);
  const auto port = digits.size() <= 5 ? parseUint(digits) : std::nullopt;
  if (!port || *port == 0 || *port > std::numeric_limits<uint16_t>::max()) {
    return fail(Code::kInvalid, quoted(digits) + " is not a port: use /proxy/{1-65535}/{path}");
  }
  ProxyTarget target{.port = static_cast<uint16_t>(*port),
                     .target = std::string(rest.substr(slash))};
  if (target.target.empty()) target.target = "/";
  const size_t query = head.target.find('?');
  if (query != std::string::npos) target.target.append(head.target, query);
  return target;
}

net::Task<Result<>> proxy(Call& call, net::Dialer& dialer, uint16_t ownPort) {
  CAY_CO_ASSIGN(ProxyTarget target, proxyTarget(call.path, call.head));
  const uint16_t port = target.port;
  if (port == ownPort) {
    co_return fail(Code::kDenied, "port " + std::to_string(ownPort) + " is this server itself");
  }
  net::Onward onward{.server = "port " + std::to_string(port),
                     .target = std::move(target.target),
                     .host = "localhost:" + std::to_string(port),
                     // Never for a server inside: they open this sandbox, or the job it runs in.
                     .withheld = {"authorization", "proxy-authorization", "x-sandbox-token"},
                     .added = {}};
  const net::StreamSource source = [&dialer, port] { return dialer.dial(port); };
  co_return co_await net::pass(call.head, call.body, call.response, std::move(onward), source);
}

}  // namespace cay::host
