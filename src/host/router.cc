#include "host/router.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "host/config.h"
#include "host/proxy_routes.h"
#include "host/route.h"
#include "net/status.h"

namespace cay::host {
namespace {

constexpr std::string_view kPrefix = "/v1";
constexpr std::string_view kHealth =
    R"({"status":"ok","version":")" CAY_VERSION R"(","protocol":3})";

// True if `path` is `route` or lies below it.
bool isBelow(std::string_view path, std::string_view route) {
  return path.starts_with(route) && (path.size() == route.size() || path[route.size()] == '/');
}

}  // namespace

bool isLoopbackHost(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return host.substr(0, end) == "[::1" && end != std::string_view::npos;
  }
  host = host.substr(0, host.rfind(':'));
  return equalIgnoreCase(host, "localhost") || isLoopbackAddress(host) ||
         (host.size() > 10 && equalIgnoreCase(host.substr(host.size() - 10), ".localhost"));
}

Result<> Router::authenticate(const net::RequestHead& head) const {
  if (!token_.empty()) {
    const auto sent = head.fields.get("X-Sandbox-Token");
    if (head.fields.count("X-Sandbox-Token") == 1 && equalConstantTime(*sent, token_)) return {};
    return fail(Code::kDenied, sent ? "wrong X-Sandbox-Token" : "X-Sandbox-Token is missing");
  }
  // A web page can make a browser send requests here, under any name that it has resolve to
  // 127.0.0.1.
  if (head.fields.get("Origin"))
    return fail(Code::kDenied, "requests of web pages are refused without a token");
  const auto host = head.fields.get("Host");
  if (!host || !isLoopbackHost(*host)) {
    return fail(Code::kDenied, "without a token only loopback host names are served");
  }
  return {};
}

net::Task<> Router::handle(const net::RequestHead& head, net::Body& body, net::Response& response) {
  const Result<> result = co_await route(head, body, response);
  if (result) co_return;
  const Error& error = result.error();
  if (response.begun()) {
    if (error.code != Code::kClosed) {
      log(Level::kWarn, "an answer was cut", {{"path", head.path}, {"error", error.message}});
    }
    response.abort();
    co_return;
  }
  if (error.code == Code::kInternal) {
    log(Level::kError, "a request failed", {{"path", head.path}, {"error", error.message}});
  }
  (void)co_await net::sendError(response, error);
}

net::Task<Result<>> Router::route(const net::RequestHead& head, net::Body& body,
                                  net::Response& response) {
  if (head.path == "/health" && token_.empty()) CAY_CO_TRY(authenticate(head));
  if (head.path == "/health" && (head.method == "GET" || head.method == "HEAD")) {
    co_return co_await net::sendJson(response, 200, kHealth);
  }
  CAY_CO_TRY(authenticate(head));
  const Activity::InUse inUse(activity_, monotonicMs);
  const std::string_view path = head.path;
  Call call{
      .head = head, .body = body, .response = response, .path = path, .query = {}, .allowed = {}};
  if (isBelow(path, kPrefix)) {
    call.path = path.substr(kPrefix.size());
  } else if (head.method != "OPTIONS") {
    co_return noSuchRoute(call);
  }
  if (isBelow(call.path, "/proxy")) co_return co_await proxy(call, services_.dialer, ownPort_);
  if (head.method == "OPTIONS") {
    net::ResponseHead options{.status = 204, .fields = {}};
    options.fields.add("Allow", "GET, HEAD, POST, PUT, DELETE, OPTIONS");
    co_return co_await net::send(response, std::move(options), {});
  }
  CAY_CO_ASSIGN(call.query, net::Query::parse(head.query));
  auto result = co_await routeSandbox(call);
  if (!result && result.error().code == Code::kMethod) {
    net::ResponseHead refusal{.status = net::httpStatus(Code::kMethod), .fields = {}};
    refusal.fields.add("Content-Type", "application/json");
    refusal.fields.add("Allow", call.allowed);
    co_return co_await net::send(response, std::move(refusal),
                                 net::errorBody(result.error().message));
  }
  co_return result;
}

net::Task<Result<>> Router::routeSandbox(Call& call) {
  const std::string_view path = call.path;
  if (path == "/exec") co_return co_await runExec(call, services_.exec);
  if (isBelow(path, "/execs")) co_return co_await serveExecs(call, services_.exec);
  if (isBelow(path, "/processes")) co_return co_await serveProcesses(call, services_.exec);
  if (isBelow(path, "/files")) co_return co_await serveFiles(call, services_.files);
  co_return noSuchRoute(call);
}

}  // namespace cay::host
