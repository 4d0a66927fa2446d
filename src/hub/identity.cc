#include "hub/identity.h"

#include "base/text.h"

namespace cay::hub {
namespace {

constexpr std::string_view kScheme = "Bearer ";
constexpr const char* kInvalid = "Invalid credentials in Authorization header";

std::unexpected<ApiError> refuse(int status, std::string message, std::string field = {}) {
  return std::unexpected(ApiError{status, std::move(message), std::move(field)});
}

}  // namespace

std::expected<Caller, ApiError> callerOf(const net::RequestHead& head, const Tokens& tokens,
                                         int64_t nowMs) {
  const size_t fields = head.fields.count("Authorization");
  if (fields == 0) {
    return refuse(401, "this needs a token: set HF_TOKEN, for example by eval \"$(cay env)\"",
                  "Authentication required");
  }
  const std::string_view value = *head.fields.get("Authorization");
  // Two would leave open whose request it is.
  if (fields > 1 || value.size() <= kScheme.size() ||
      !equalIgnoreCase(value.substr(0, kScheme.size()), kScheme)) {
    return refuse(401, "the Authorization field must be one, of the form 'Bearer <token>'",
                  kInvalid);
  }
  const auto caller = tokens.check(trim(value.substr(kScheme.size())), nowMs);
  if (!caller) return refuse(401, caller.error().message, kInvalid);
  if (caller->role == Role::kProxy) {
    return refuse(403, "this token is for the proxy alone, not for the API");
  }
  return *caller;
}

std::expected<void, ApiError> mayUse(const Caller& caller, std::string_view ns) {
  if (caller.may(ns)) return {};
  return refuse(
      403, "the token of " + quoted(caller.name) + " has no right to the namespace " + quoted(ns));
}

}  // namespace cay::hub
