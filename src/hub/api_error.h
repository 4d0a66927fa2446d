// Failures as clients of the Hub's API read them: {"error": sentence} and the same in the field
// X-Error-Message.
#pragma once

#include <string>

#include "base/error.h"
#include "net/handler.h"

namespace cay::hub {

struct ApiError {
  int status = 500;
  std::string message;
  // The text of X-Error-Message where clients know it by heart; empty: the message.
  std::string field;
};

// By the table of net/status.h, but 507 for a full disk.
ApiError apiErrorOf(const Error& error);

// The head of its answer, but for the body's length; 401 names the scheme that is wanted.
net::ResponseHead apiErrorHead(const ApiError& error);
net::Task<Result<>> sendApiError(net::Response& response, const ApiError& error);

}  // namespace cay::hub
