#include "hub/relay.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "hub/api_error.h"
#include "hub/credentials.h"
#include "hub/identity.h"
#include "hub/tls_stream.h"
#include "hub/trust_store.h"
#include "net/passage.h"
#include "sys/io.h"

namespace cay::hub {
namespace {

constexpr uint16_t kHttpPort = 80;
constexpr uint16_t kHttpsPort = 443;
constexpr size_t kMostTokenBytes = 4096;

bool isPlainText(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

// The first that can be read of those that this machine's programs use.
std::shared_ptr<TlsContext> machineTrust() {
  for (const std::string& file : trustFiles()) {
    if (auto context = TlsContext::client(file)) return *std::move(context);
  }
  return nullptr;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
  return text;
}

// Lists go on with whole URLs, which clients follow with all of their fields: back to us.
void leadBack(net::ResponseHead& head, const std::string& upstream, const std::string& here) {
  net::Fields fields;
  for (const net::Field& field : head.fields) {
    const bool isLink = equalIgnoreCase(field.name, "link");
    fields.add(field.name, isLink ? replaced(field.value, "<" + upstream + "/", "<" + here + "/")
                                  : field.value);
  }
  head.fields = std::move(fields);
}

}  // namespace

Result<std::string> readUpstreamToken(const std::string& file) {
  CAY_ASSIGN(const std::string text, sys::readFile(file.c_str(), kMostTokenBytes));
  const auto parts = words(text);
  std::string token(parts.size() == 1 ? parts.front() : "");
  if (!isPlainText(token)) return fail(Code::kInvalid, quoted(file) + " does not hold a token");
  if (holdsOurToken(token)) {
    return fail(Code::kInvalid, quoted(file) +
                                    " holds a token of a hub like this one, which is "
                                    "not for others");
  }
  return token;
}

Result<Relay::Upstream> Relay::parse(const std::string& url) {
  Upstream upstream;
  std::string_view rest = url;
  const auto bad = [&] {
    return fail(Code::kInvalid, "the upstream " + quoted(url) + " is not of the form https://host");
  };
  if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
    upstream.tls = false;
  } else {
    return bad();
  }
  const std::string_view authority = rest.substr(0, rest.find('/'));
  upstream.origin = url.substr(0, url.size() - rest.size() + authority.size());
  upstream.prefix = rest.substr(authority.size());
  while (upstream.prefix.ends_with('/')) upstream.prefix.pop_back();
  const size_t colon = authority.rfind(':');
  const bool hasPort = colon != std::string_view::npos && !authority.ends_with(']');
  const auto port = hasPort ? parseUint(authority.substr(colon + 1))
                            : std::optional<uint64_t>(upstream.tls ? kHttpsPort : kHttpPort);
  upstream.host = authority.substr(0, hasPort ? colon : authority.size());
  if (upstream.host.starts_with('[') && upstream.host.ends_with(']')) {
    upstream.host = upstream.host.substr(1, upstream.host.size() - 2);
  }
  const bool plain = isPlainText(url) && url.find_first_of("@?#\"<>\\") == std::string::npos;
  if (!plain || upstream.host.empty() || !port || *port == 0 || *port > UINT16_MAX) return bad();
  upstream.port = static_cast<uint16_t>(*port);
  return upstream;
}

Result<std::unique_ptr<Relay>> Relay::open(UpstreamSettings settings, const Tokens& tokens,
                                           Outbound& outbound) {
  CAY_ASSIGN(Upstream upstream, parse(settings.url));
  std::unique_ptr<Relay> relay(
      new Relay(std::move(upstream), std::move(settings.token), tokens, outbound));
  if (relay->upstream_.tls) relay->trust_ = machineTrust();
  return relay;
}

net::Task<> Relay::handle(const net::RequestHead& head, net::Body& body, net::Response& response) {
  const bool oursInside = std::ranges::any_of(
      head.fields, [](const net::Field& field) { return holdsOurToken(field.value); });
  bool byOurUser = false;
  if (oursInside || !head.peer.loopback) {
    const auto caller = callerOf(head, tokens_, wallMs());
    if (!caller) {
      (void)co_await sendApiError(response, caller.error());
      co_return;
    }
    byOurUser = true;
  }
  const net::StreamSource source = [this] { return dial(); };
  const auto passed = co_await net::pass(head, body, response, onward(head, byOurUser), source);
  if (passed) co_return;
  if (response.begun() || passed.error().code == Code::kClosed) {
    response.abort();
    co_return;
  }
  ApiError error = apiErrorOf(passed.error());
  if (passed.error().code == Code::kUnreachable) {
    error.message = head.method + " " + head.path +
                    " is not a route of this hub, and its upstream " + upstream_.origin +
                    " did not answer: " + error.message;
  }
  (void)co_await sendApiError(response, error);
}

net::Task<Result<net::Stream>> Relay::dial() {
  CAY_CO_ASSIGN(net::Stream stream, co_await outbound_.dial(upstream_.host, upstream_.port));
  if (!upstream_.tls) co_return stream;
  if (!trust_) co_return fail(Code::kUnreachable, "this machine has no certificates to trust");
  auto secure = co_await connectTls(trust_, std::move(stream), upstream_.host);
  if (!secure) co_return fail(Code::kUnreachable, secure.error().message);
  co_return secure;
}

net::Onward Relay::onward(const net::RequestHead& head, bool byOurUser) const {
  const std::string host = upstream_.origin.substr(upstream_.origin.find("://") + 3);
  net::Onward onward{.server = upstream_.origin,
                     .target = upstream_.prefix + head.target,
                     .host = host,
                     .withheld = {"host", "proxy-authorization", "x-sandbox-token"},
                     .added = {}};
  for (const net::Field& field : head.fields) {
    if (holdsOurToken(field.value)) onward.withheld.push_back(field.name);
  }
  if (byOurUser && !token_.empty()) {
    onward.withheld.emplace_back("authorization");
    onward.added.add("Authorization", "Bearer " + token_);
  }
  const std::string here = (head.peer.tls ? "https://" : "http://") +
                           std::string(head.fields.get("host").value_or("localhost"));
  onward.amend = [upstream = upstream_.origin + upstream_.prefix, here](net::ResponseHead& answer) {
    leadBack(answer, upstream, here);
  };
  return onward;
}

}  // namespace cay::hub
