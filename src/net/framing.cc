#include "net/framing.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"

namespace cay::net {
namespace {

std::unexpected<HeadError> refuse(int status, std::string_view message) {
  return std::unexpected(HeadError{status, std::string(message)});
}

// The framing that the fields announce; kNone if they announce none.
std::expected<BodyFraming, HeadError> announced(int minorVersion, const Fields& fields) {
  const size_t lengths = fields.count("content-length");
  const size_t encodings = fields.count("transfer-encoding");
  if (encodings > 0) {
    if (lengths > 0) return refuse(400, "Transfer-Encoding and Content-Length exclude each other");
    if (minorVersion == 0) return refuse(400, "HTTP/1.0 has no Transfer-Encoding");
    if (encodings > 1 || !equalIgnoreCase(*fields.get("transfer-encoding"), "chunked")) {
      return refuse(400, "the only Transfer-Encoding understood is a single 'chunked'");
    }
    return BodyFraming{Framing::kChunked, 0};
  }
  if (lengths == 0) return BodyFraming{};
  const std::optional<uint64_t> length = parseUint(*fields.get("content-length"));
  if (lengths > 1 || !length) return refuse(400, "Content-Length must be one whole number");
  return BodyFraming{Framing::kLength, *length};
}

// The Host field as other programs read it: no room for a second host, a path or a user name.
bool isPlausibleHost(std::string_view host) {
  return !host.empty() && host.find_first_of(" \t,/\\?#@") == std::string_view::npos;
}

std::expected<void, HeadError> judgeHost(const RequestHead& head) {
  const size_t hosts = head.fields.count("host");
  if (hosts > 1) return refuse(400, "more than one Host field");
  if (hosts == 0) {
    if (head.minorVersion == 0) return {};
    return refuse(400, "the Host field is missing");
  }
  if (!isPlausibleHost(*head.fields.get("host"))) return refuse(400, "the Host field is malformed");
  return {};
}

std::expected<void, HeadError> judgeAuthority(RequestHead& head) {
  const std::string_view target = head.target;
  const size_t colon = target.rfind(':');
  if (colon == std::string_view::npos) return refuse(400, "CONNECT wants a host and a port");
  const std::string_view host = target.substr(0, colon);
  const auto port = parseUint(target.substr(colon + 1));
  const bool bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  const std::string_view inside = bracketed ? host.substr(1, host.size() - 2) : host;
  if (!isPlausibleHost(inside) || inside.find_first_of("[]") != std::string_view::npos ||
      (inside.contains(':') && !bracketed)) {
    return refuse(400, "the host of CONNECT is malformed");
  }
  if (!port || *port == 0 || *port > UINT16_MAX) {
    return refuse(400, "the port of CONNECT is malformed");
  }
  head.path.clear();
  head.query.clear();
  return {};
}

std::expected<void, HeadError> judgeTarget(RequestHead& head, Connects connects) {
  if (head.method == "CONNECT") {
    if (connects == Connects::kRefused) return refuse(405, "CONNECT is not supported");
    return judgeAuthority(head);
  }
  if (head.target.find('#') != std::string::npos) {
    return refuse(400, "the request target contains a fragment");
  }
  if (head.target == "*") {
    if (head.method != "OPTIONS") return refuse(400, "the target '*' is only for OPTIONS");
  } else if (head.target.front() != '/') {
    constexpr std::string_view kScheme = "http://";
    const std::string_view target = head.target;
    if (!equalIgnoreCase(target.substr(0, kScheme.size()), kScheme)) {
      return refuse(400, "the request target must be a path or begin with http://");
    }
    const std::string_view rest = target.substr(kScheme.size());
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?"));
    const auto host = head.fields.get("host");
    if (!isPlausibleHost(authority) || (host && !equalIgnoreCase(*host, authority))) {
      return refuse(400, "the host of the request target is not that of the Host field");
    }
    std::string origin(rest.substr(authority.size()));
    if (!origin.starts_with('/')) origin.insert(0, "/");
    head.target = std::move(origin);
  }
  const size_t mark = head.target.find('?');
  head.path = head.target.substr(0, mark);
  head.query = mark == std::string::npos ? std::string() : head.target.substr(mark + 1);
  return {};
}

}  // namespace

bool isBodyless(int status) {
  return status / 100 == 1 || status == 204 || status == 304;
}

bool isForbiddenTrailer(std::string_view name) {
  constexpr auto kForbidden = std::to_array<std::string_view>({"authorization",
                                                               "cache-control",
                                                               "connection",
                                                               "content-encoding",
                                                               "content-length",
                                                               "content-range",
                                                               "content-type",
                                                               "cookie",
                                                               "expect",
                                                               "host",
                                                               "keep-alive",
                                                               "location",
                                                               "max-forwards",
                                                               "proxy-authenticate",
                                                               "proxy-authorization",
                                                               "proxy-connection",
                                                               "range",
                                                               "set-cookie",
                                                               "te",
                                                               "trailer",
                                                               "transfer-encoding",
                                                               "upgrade",
                                                               "www-authenticate"});
  return std::ranges::any_of(
      kForbidden, [&](std::string_view forbidden) { return equalIgnoreCase(name, forbidden); });
}

std::expected<void, HeadError> judgeRequest(RequestHead& head, Connects connects) {
  if (auto host = judgeHost(head); !host) return host;
  if (auto target = judgeTarget(head, connects); !target) return target;
  const auto body = announced(head.minorVersion, head.fields);
  if (!body) return std::unexpected(body.error());
  // What follows such a head belongs to the tunnel.
  if (head.method == "CONNECT" && body->framing != Framing::kNone) {
    return refuse(400, "CONNECT has no body");
  }
  head.framing = body->framing;
  head.contentLength = body->contentLength;
  head.keepAlive = head.minorVersion == 0 ? head.fields.hasToken("connection", "keep-alive")
                                          : !head.fields.hasToken("connection", "close");
  head.expectContinue = false;
  if (head.minorVersion > 0) {
    if (const auto expectation = head.fields.get("expect")) {
      if (head.fields.count("expect") > 1 || !equalIgnoreCase(*expectation, "100-continue")) {
        return refuse(417, "the only expectation understood is 100-continue");
      }
      head.expectContinue = true;
    }
  }
  return {};
}

std::expected<BodyFraming, HeadError> judgeResponse(int status, int minorVersion,
                                                    const Fields& fields, bool toHead) {
  auto body = announced(minorVersion, fields);
  if (!body) return body;
  if (toHead || isBodyless(status)) return BodyFraming{Framing::kNone, body->contentLength};
  if (body->framing == Framing::kNone) body->framing = Framing::kUntilClose;
  return body;
}

}  // namespace cay::net
