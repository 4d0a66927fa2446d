#include "host/router.h"

#include "base/log.h"
#include "base/text.h"
#include "host/config.h"
#include "net/status.h"

namespace cay::host {
namespace {

constexpr char kTokenField[] = "X-Sandbox-Token";
constexpr std::string_view kHealth =
    R"({"status":"ok","version":")" CAY_VERSION R"(","protocol":3})";

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

std::string_view tokenOf(const net::RequestHead& head) {
  if (head.fields.count(kTokenField) != 1) return {};
  return *head.fields.get(kTokenField);
}

std::unexpected<Error> denied(const net::RequestHead& head) {
  return fail(Code::kDenied, head.fields.count(kTokenField) > 0 ? "wrong X-Sandbox-Token"
                                                                : "X-Sandbox-Token is missing");
}

net::Task<> Router::handle(const net::RequestHead& head, net::Body& body, net::Response& response) {
  const Result<> result = co_await answer(head, body, response);
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

net::Task<Result<>> Router::answer(const net::RequestHead& head, net::Body& body,
                                   net::Response& response) {
  if (head.path == "/health" && (head.method == "GET" || head.method == "HEAD")) {
    CAY_CO_TRY(admit(head));
    co_return co_await net::sendJson(response, 200, kHealth);
  }
  Call call{.head = head,
            .body = body,
            .response = response,
            .path = head.path,
            .query = {},
            .allowed = {}};
  auto result = co_await route(call);
  if (!result && result.error().code == Code::kMethod && !response.begun()) {
    net::ResponseHead refusal{.status = net::httpStatus(Code::kMethod), .fields = {}};
    refusal.fields.add("Content-Type", "application/json");
    refusal.fields.add("Allow", call.allowed);
    co_return co_await net::send(response, std::move(refusal),
                                 net::errorBody(result.error().message));
  }
  co_return result;
}

}  // namespace cay::host
