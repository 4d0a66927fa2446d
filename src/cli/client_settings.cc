#include "cli/client_settings.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "base/text.h"

namespace cay::cli {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";
constexpr uint32_t kLoopbackNet = 127;

void setBoth(std::vector<Setting>& settings, const char* upper, const char* lower,
             const std::string& value) {
  settings.push_back({upper, value});
  settings.push_back({lower, value});
}

std::string lowerCase(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

bool endsInLabel(std::string_view name, std::string_view end) {
  return name == end || (name.size() > end.size() && name.ends_with(end) &&
                         name[name.size() - end.size() - 1] == '.');
}

// Whether an entry is about names below the domain. Ports do not save it: clients differ in what
// they make of them.
bool coversBelow(std::string_view entry, std::string_view domain) {
  std::string name = lowerCase(trim(entry));
  if (const size_t scheme = name.find("://"); scheme != std::string::npos) {
    name.erase(0, scheme + 3);
  }
  if (const size_t port = name.find(':'); port != std::string::npos) name.erase(port);
  if (name.starts_with('*')) name.erase(0, 1);
  if (name.starts_with('.')) name.erase(0, 1);
  return name.empty() || endsInLabel(domain, name) || endsInLabel(name, domain);
}

// "http://" + user + "@" + the rest of the address.
std::string withToken(const std::string& api, const std::string& token) {
  constexpr std::string_view kScheme = "http://";
  return std::string(kScheme) + "cay:" + token + "@" + api.substr(kScheme.size());
}

bool isLoopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24U == kLoopbackNet;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return address.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

}  // namespace

std::vector<Setting> clientSettings(const ClientFacts& facts) {
  std::vector<Setting> settings{{"HF_ENDPOINT", facts.api}, {"HF_TOKEN", facts.userToken}};
  if (!facts.bundle.empty()) settings.push_back({"SSL_CERT_FILE", facts.bundle});
  if (!facts.hashedFolder.empty()) {
    // The file would win.
    settings.push_back({"SSL_CERT_FILE", std::nullopt});
    settings.push_back({"SSL_CERT_DIR", facts.hashedFolder});
  }
  if (!facts.proxyToken.empty()) {
    setBoth(settings, "HTTPS_PROXY", "https_proxy", withToken(facts.api, facts.proxyToken));
    setBoth(settings, "NO_PROXY", "no_proxy",
            noProxyWithout(facts.noProxy, facts.domain, kLoopback));
  } else if (facts.hasProxy) {
    // That proxy knows nothing of names that only this machine has.
    setBoth(settings, "NO_PROXY", "no_proxy",
            noProxyWithout(facts.noProxy, facts.domain,
                           std::string(kLoopback).append(",").append(facts.domain)));
  }
  return settings;
}

std::string noProxyWithout(std::string_view current, std::string_view domain,
                           std::string_view more) {
  std::string out;
  const auto added = split(more, ',');
  for (const std::string_view entry : split(current, ',')) {
    const std::string_view name = trim(entry);
    if (coversBelow(name, domain) || std::ranges::find(added, name) != added.end()) continue;
    out.append(name).append(",");
  }
  return out.append(more);
}

bool namesResolve(const std::string& domain) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (::getaddrinfo(("probe--1." + domain).c_str(), nullptr, &wanted, &raw) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> found(raw, ::freeaddrinfo);
  if (!endsInLabel(domain, "localhost")) return true;
  // Some resolvers have an answer for every name.
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    if (!isLoopback(*at->ai_addr)) return false;
  }
  return true;
}

}  // namespace cay::cli
