#include "hub/api_error.h"

#include <algorithm>
#include <cerrno>

#include "net/status.h"

namespace cay::hub {
namespace {

constexpr int kUnauthorized = 401;
constexpr int kInsufficientStorage = 507;
constexpr size_t kMostFieldBytes = 500;

// What a field can hold: one line of plain ASCII.
std::string fieldText(std::string_view text) {
  std::string out(text.substr(0, kMostFieldBytes));
  std::ranges::replace_if(out, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
  return out;
}

}  // namespace

ApiError apiErrorOf(const Error& error) {
  const bool full = error.code == Code::kExhausted && (error.sys == ENOSPC || error.sys == EDQUOT);
  return {.status = full ? kInsufficientStorage : net::httpStatus(error.code),
          .message = error.message,
          .field = {}};
}

net::ResponseHead apiErrorHead(const ApiError& error) {
  net::ResponseHead head;
  head.status = error.status;
  head.fields.add("Content-Type", "application/json");
  head.fields.add("X-Error-Message", fieldText(error.field.empty() ? error.message : error.field));
  if (error.status == kUnauthorized) head.fields.add("WWW-Authenticate", "Bearer");
  return head;
}

net::Task<Result<>> sendApiError(net::Response& response, const ApiError& error) {
  co_return co_await net::send(response, apiErrorHead(error), net::errorBody(error.message));
}

}  // namespace cay::hub
