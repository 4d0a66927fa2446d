// The one table from kinds of failure to HTTP statuses, and the shape of an error answer.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace cay::net {

int httpStatus(Code code);
// "Not Found" for 404; "Unknown" for what HTTP does not name.
std::string_view reasonPhrase(int status);
// {"error":"…"}
std::string errorBody(std::string_view message);

}  // namespace cay::net
