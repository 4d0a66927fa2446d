#include "hub/api_call.h"

#include <utility>

#include "base/text.h"
#include "host/body_fields.h"
#include "hub/api_error.h"
#include "net/status.h"

namespace cay::hub {
namespace {

constexpr size_t kMostBodyBytes = size_t{4} << 20;

}  // namespace

net::ResponseHead newHead(const ApiCall& call, int status) {
  net::ResponseHead head{.status = status, .fields = {}};
  head.fields.add("X-Request-Id", call.requestId);
  return head;
}

net::Task<Result<>> answer(ApiCall& call, const json::Value& value) {
  net::ResponseHead head = newHead(call);
  head.fields.add("Content-Type", "application/json");
  const std::string body = json::serialize(value);
  co_return co_await net::send(call.response, std::move(head), body);
}

net::Task<Result<>> refuse(ApiCall& call, const ApiError& error) {
  net::ResponseHead head = apiErrorHead(error);
  head.fields.add("X-Request-Id", call.requestId);
  if (error.status == net::httpStatus(Code::kMethod)) head.fields.add("Allow", call.allowed);
  const std::string body = net::errorBody(error.message);
  co_return co_await net::send(call.response, std::move(head), body);
}

net::Task<Result<json::Object>> bodyOf(ApiCall& call) {
  CAY_CO_ASSIGN(const std::string text,
                co_await net::readAll(call.head, call.body, kMostBodyBytes));
  co_return host::bodyObject(text);
}

Result<engine::Pairs> labelsOf(const net::Query& query) {
  engine::Pairs labels;
  for (const std::string_view text : query.all("label")) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string_view::npos) {
      return fail(Code::kInvalid,
                  "the parameter 'label' must be of the form key=value, not " + quoted(text));
    }
    labels.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return labels;
}

}  // namespace cay::hub
