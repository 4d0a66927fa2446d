// One request on its way to a route of the API: what every route function receives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "host/call.h"
#include "hub/hub_state.h"
#include "hub/scheduler.h"
#include "net/handler.h"
#include "net/task.h"

namespace cay::hub {

// A route function is `net::Task<Result<>> name(ApiCall& call)`. It answers, or returns an Error
// before the answer has begun, which the router answers; one afterwards cuts the connection.
struct ApiCall : host::Call {
  HubState& state;
  Scheduler& scheduler;
  std::vector<std::string_view> steps;  // of the path: "api", "jobs", a namespace, a job
  std::string requestId;
  Caller caller = {};  // of routes that need one

  [[nodiscard]] std::string_view ns() const { return steps.at(2); }
  // Of the job or schedule.
  [[nodiscard]] std::string_view id() const { return steps.at(3); }
};

// With what every answer of the API has.
net::ResponseHead newHead(const ApiCall& call, int status = 200);
net::Task<Result<>> answer(ApiCall& call, const json::Value& value);
// For a status that no kind of Error has.
net::Task<Result<>> refuse(ApiCall& call, const ApiError& error);

// The body as an object; kTooLarge beyond what any job needs.
net::Task<Result<json::Object>> bodyOf(ApiCall& call);
// Texts of the form key=value in the parameters called "label".
Result<engine::Pairs> labelsOf(const net::Query& query);

}  // namespace cay::hub
