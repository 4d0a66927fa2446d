#include "hub/previous_proxy.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "hub/credentials.h"

namespace cay::hub {
namespace {

constexpr uint16_t kHttpPort = 80;
constexpr std::string_view kSchemeEnd = "://";

std::string_view firstOf(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = environment(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

std::optional<uint16_t> portOf(std::string_view digits) {
  const auto port = parseUint(digits);
  if (!port || *port == 0 || *port > UINT16_MAX) return std::nullopt;
  return static_cast<uint16_t>(*port);
}

// The end of a host, if a port follows it; an IPv6 address is in brackets then.
size_t hostEnd(std::string_view authority) {
  const size_t colon = authority.rfind(':');
  const bool isPort = colon != std::string_view::npos &&
                      (authority.find(':') == colon || authority[colon - 1] == ']');
  return isPort ? colon : authority.size();
}

std::string_view withoutBrackets(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) return host.substr(1, host.size() - 2);
  return host;
}

// "example.com", ".example.com" and "*.example.com" alike: the name and all below it.
bool covers(std::string_view entry, std::string_view host) {
  if (entry.starts_with('*')) entry.remove_prefix(1);
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.size() > host.size() || entry.empty()) return false;
  const size_t at = host.size() - entry.size();
  return equalIgnoreCase(host.substr(at), entry) && (at == 0 || host[at - 1] == '.');
}

std::unexpected<Error> unusable(std::string_view why) {
  // The value may hold a password.
  return fail(Code::kInvalid, "the proxy of the environment cannot be used: " + std::string(why));
}

}  // namespace

bool PreviousProxy::isFor(std::string_view host, uint16_t port) const {
  return std::ranges::none_of(without, [&](const std::string& entry) {
    if (entry == "*") return true;
    const size_t end = hostEnd(entry);
    if (end < entry.size() && portOf(entry.substr(end + 1)) != port) return false;
    return covers(withoutBrackets(std::string_view(entry).substr(0, end)), withoutBrackets(host));
  });
}

Result<std::optional<PreviousProxy>> previousProxy(const Environment& environment) {
  std::string_view url =
      firstOf(environment, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  if (url.empty()) return std::nullopt;
  if (const size_t scheme = url.find(kSchemeEnd); scheme != std::string_view::npos) {
    if (!equalIgnoreCase(url.substr(0, scheme), "http")) {
      return unusable("only proxies of http:// are supported");
    }
    url.remove_prefix(scheme + kSchemeEnd.size());
  }
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  PreviousProxy proxy;
  if (const size_t at = authority.rfind('@'); at != std::string_view::npos) {
    const auto user = percentDecode(authority.substr(0, at));
    if (!user) return unusable("its user name or password is malformed");
    if (holdsOurToken(*user)) return std::nullopt;
    proxy.authorization = "Basic " + base64Encode(user->contains(':') ? *user : *user + ":");
    authority.remove_prefix(at + 1);
  }
  const size_t end = hostEnd(authority);
  const auto port = end < authority.size() ? portOf(authority.substr(end + 1)) : kHttpPort;
  proxy.host = withoutBrackets(authority.substr(0, end));
  if (!port || proxy.host.empty()) return unusable("its host or port is malformed");
  proxy.port = *port;
  for (const std::string_view entry : split(firstOf(environment, {"no_proxy", "NO_PROXY"}), ',')) {
    if (!trim(entry).empty()) proxy.without.emplace_back(trim(entry));
  }
  return proxy;
}

}  // namespace cay::hub
