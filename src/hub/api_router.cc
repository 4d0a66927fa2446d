#include "hub/api_router.h"

#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"
#include "host/route.h"
#include "hub/api_call.h"
#include "hub/hardware_routes.h"
#include "hub/identity.h"
#include "hub/identity_routes.h"
#include "hub/job_routes.h"
#include "hub/log_routes.h"
#include "hub/metric_routes.h"
#include "hub/schedule_routes.h"
#include "hub/server_bucket.h"

namespace cay::hub {
namespace {

constexpr std::string_view kEdgePaths = "/x/";
constexpr std::string_view kAnyStep = "*";
constexpr std::string_view kAnyRest = "**";

enum class Access : uint8_t {
  kOpen,
  kToken,
  kNamespace,  // a token with a right to the namespace in the path
};

struct Route {
  std::string_view method;  // GET is HEAD as well
  std::string_view pattern;
  Access access;
  net::Task<Result<>> (*function)(ApiCall& call);
};

constexpr Route kRoutes[] = {
    {"GET", "/healthz", Access::kOpen, answerHealth},
    {"GET", "/api/whoami-v2", Access::kToken, answerWhoami},
    {"GET", "/api/agent-harnesses", Access::kOpen, answerHarnesses},
    {"GET", "/api/jobs/hardware", Access::kOpen, listHardware},
    {"GET", "/api/spaces/hardware", Access::kOpen, listHardware},
    {"GET", "/api/jobs/*", Access::kNamespace, listJobs},
    {"POST", "/api/jobs/*", Access::kNamespace, createJob},
    {"GET", "/api/jobs/*/*", Access::kNamespace, inspectJob},
    {"POST", "/api/jobs/*/*/cancel", Access::kNamespace, cancelJob},
    {"PUT", "/api/jobs/*/*/labels", Access::kNamespace, labelJob},
    {"PUT", "/api/jobs/*/*/expose", Access::kNamespace, exposeJob},
    {"POST", "/api/jobs/*/*/duplicate", Access::kNamespace, duplicateJob},
    {"GET", "/api/jobs/*/*/logs", Access::kNamespace, streamLogs},
    {"GET", "/api/jobs/*/*/metrics", Access::kNamespace, streamMetrics},
    {"GET", "/api/scheduled-jobs/*", Access::kNamespace, listSchedules},
    {"POST", "/api/scheduled-jobs/*", Access::kNamespace, createSchedule},
    {"GET", "/api/scheduled-jobs/*/*", Access::kNamespace, inspectSchedule},
    {"DELETE", "/api/scheduled-jobs/*/*", Access::kNamespace, deleteSchedule},
    {"POST", "/api/scheduled-jobs/*/*/suspend", Access::kNamespace, suspendSchedule},
    {"POST", "/api/scheduled-jobs/*/*/resume", Access::kNamespace, resumeSchedule},
    {"POST", "/api/scheduled-jobs/*/*/run", Access::kNamespace, runSchedule},
    {"POST", "/api/scheduled-jobs/*/*/schedule", Access::kNamespace, reschedule},
    {"PUT", "/api/scheduled-jobs/*/*/labels", Access::kNamespace, labelSchedule},
    {"GET", "/buckets/huggingface/sbx-server/resolve/*", Access::kOpen, sendServer},
    {"GET", "/api/buckets/**", Access::kToken, refuseUploads},
    {"POST", "/api/buckets/**", Access::kToken, refuseUploads},
};

bool matches(std::string_view pattern, const std::vector<std::string_view>& steps) {
  const auto wanted = host::segments(pattern);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == kAnyRest) return true;
    if (i >= steps.size() || (wanted[i] != kAnyStep && wanted[i] != steps[i])) return false;
  }
  return wanted.size() == steps.size();
}

struct Found {
  const Route* route = nullptr;
  std::string allowed;  // methods that there are for the path; empty: none of our paths
};

Found findRoute(std::string_view method, const std::vector<std::string_view>& steps) {
  Found found;
  for (const Route& route : kRoutes) {
    if (!matches(route.pattern, steps)) continue;
    if (route.method == method || (route.method == "GET" && method == "HEAD")) {
      found.route = &route;
      return found;
    }
    found.allowed.append(found.allowed.empty() ? "" : ", ").append(route.method);
  }
  return found;
}

std::optional<ApiError> check(Access access, const ApiCall& call) {
  if (access != Access::kNamespace) return std::nullopt;
  const auto may = mayUse(call.caller, call.ns());
  if (!may) return may.error();
  return std::nullopt;
}

net::Task<Result<>> answerRoute(ApiCall& call, const Route* route) {
  if (route == nullptr) {
    co_return fail(Code::kMethod,
                   quoted(call.head.method) + " is not a method of this route: " + call.allowed);
  }
  if (route->access != Access::kOpen) {
    auto caller = co_await call.state.callers.callerOf(call.head);
    if (!caller) co_return co_await refuse(call, caller.error());
    call.caller = *std::move(caller);
  }
  if (const auto refusal = check(route->access, call)) co_return co_await refuse(call, *refusal);
  CAY_CO_ASSIGN(call.query, net::Query::parse(call.head.query));
  co_return co_await route->function(call);
}

}  // namespace

net::Task<> ApiRouter::handle(const net::RequestHead& head, net::Body& body,
                              net::Response& response) {
  if (head.method == "CONNECT" || head.path.starts_with(kEdgePaths)) {
    co_return co_await edge_.handle(head, body, response);
  }
  std::vector<std::string_view> steps = host::segments(head.path);
  Found found = findRoute(head.method, steps);
  if (found.route == nullptr && found.allowed.empty()) {
    co_return co_await relay_.handle(head, body, response);
  }
  ApiCall call{{.head = head,
                .body = body,
                .response = response,
                .path = head.path,
                .query = {},
                .allowed = std::move(found.allowed)},
               state_,
               scheduler_,
               std::move(steps),
               randomHex(16)};
  const Result<> result = co_await answerRoute(call, found.route);
  if (result) co_return;
  const Error& error = result.error();
  if (response.begun()) {
    if (error.code != Code::kClosed) {
      log(Level::kWarn, "an answer was cut",
          {{"path", head.path}, {"request", call.requestId}, {"error", error.message}});
    }
    response.abort();
    co_return;
  }
  if (error.code == Code::kInternal) {
    log(Level::kError, "a request failed",
        {{"path", head.path}, {"request", call.requestId}, {"error", error.message}});
  }
  (void)co_await refuse(call, apiErrorOf(error));
}

}  // namespace cay::hub
