// Who a request comes from, and what it may touch.
#pragma once

#include <cstdint>
#include <expected>
#include <string_view>

#include "hub/api_error.h"
#include "hub/tokens.h"
#include "net/http.h"

namespace cay::hub {

// By its one Authorization field, "Bearer <token>". 401 without one; 401 with the field that keeps
// clients from taking it for a missing repository, if the token is not good; 403 for a token of the
// proxy.
std::expected<Caller, ApiError> callerOf(const net::RequestHead& head, const Tokens& tokens,
                                         int64_t nowMs);

// 403, whether or not there is such a namespace.
std::expected<void, ApiError> mayUse(const Caller& caller, std::string_view ns);

}  // namespace cay::hub
