#include "host/proxy_fields.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "base/text.h"

namespace cay::host {
namespace {

using Names = std::vector<std::string_view>;

bool isOneOf(std::string_view name, const Names& names) {
  return std::ranges::any_of(names,
                             [&](std::string_view other) { return equalIgnoreCase(name, other); });
}

// Never for a server inside: they open this sandbox, or the job it runs in.
const Names& credentials() {
  static const Names names = {"authorization", "proxy-authorization", "x-sandbox-token"};
  return names;
}

// Concern one connection only, whatever its Connection field says (RFC 9110, 7.6.1).
const Names& hopByHop() {
  static const Names names = {
      "connection", "keep-alive",        "proxy-connection", "proxy-authenticate",
      "te",         "transfer-encoding", "upgrade",          "expect"};
  return names;
}

// What the Connection fields name besides. Host must not be taken away that way.
Names namedByConnection(const net::Fields& fields) {
  Names names;
  for (const net::Field& field : fields) {
    if (!equalIgnoreCase(field.name, "connection")) continue;
    for (const std::string_view name : net::listElements(field.value)) {
      if (!equalIgnoreCase(name, "host")) names.push_back(name);
    }
  }
  return names;
}

net::Fields passedOn(const net::Fields& fields) {
  const Names named = namedByConnection(fields);
  net::Fields passed;
  for (const net::Field& field : fields) {
    if (isOneOf(field.name, hopByHop()) || isOneOf(field.name, named)) continue;
    passed.add(field.name, field.value);
  }
  return passed;
}

void copy(std::string_view name, const net::Fields& from, net::Fields& to) {
  for (const net::Field& field : from) {
    if (equalIgnoreCase(field.name, name)) to.add(field.name, field.value);
  }
}

}  // namespace

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

bool wantsUpgrade(const net::RequestHead& head) {
  const bool hasBody = head.framing == net::Framing::kChunked ||
                       (head.framing == net::Framing::kLength && head.contentLength > 0);
  return head.minorVersion > 0 && !hasBody && head.fields.count("upgrade") > 0 &&
         head.fields.hasToken("connection", "upgrade");
}

net::Fields innerRequestFields(const net::RequestHead& head, uint16_t port, bool upgrade) {
  net::Fields fields = passedOn(head.fields);
  for (const std::string_view name : credentials()) fields.erase(name);
  fields.erase("content-length");
  if (fields.count("host") == 0) fields.add("Host", "localhost:" + std::to_string(port));
  if (upgrade) copy("upgrade", head.fields, fields);
  fields.add("Connection", upgrade ? "Upgrade" : "close");
  return fields;
}

net::Fields innerTrailers(const net::Fields& trailers) {
  net::Fields passed = trailers;
  for (const std::string_view name : credentials()) passed.erase(name);
  return passed;
}

net::Fields outerResponseFields(const net::ResponseHead& head, net::Framing framing) {
  constexpr int kSwitching = 101;
  constexpr int kNoContent = 204;
  constexpr int kUpgradeRequired = 426;
  net::Fields fields = passedOn(head.fields);
  if (head.status == kSwitching || head.status == kUpgradeRequired) {
    copy("upgrade", head.fields, fields);
  }
  // With kNone it describes the body that GET would have given.
  const bool lengthIsTrue =
      framing == net::Framing::kLength ||
      (framing == net::Framing::kNone && head.status != kNoContent && head.status != kSwitching);
  if (!lengthIsTrue) fields.erase("content-length");
  return fields;
}

}  // namespace cay::host
