// The NDJSON stream of an exec's output and end, to one client.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "host/call.h"
#include "host/exec_request.h"
#include "net/task.h"
#include "sandbox/sandbox.h"

namespace cay::host {

struct StreamOptions {
  OutputEncoding encoding = OutputEncoding::kText;
  bool startEvent = false;  // say first that it has started
  bool follow = true;       // wait for more until the exit; else end with what is there
};

// Answers the call. An error (kClosed) means that the client has gone.
net::Task<Result<>> streamOutput(Call& call, sandbox::Follower& follower, StreamOptions options);

// The exit record as clients see it, without "event".
json::Object exitObject(const sandbox::Exec& exec);

}  // namespace cay::host
