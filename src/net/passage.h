// One request passed on to another server, and its answer back: a reverse proxy.
#pragma once

#include <functional>

#include "base/error.h"
#include "net/handler.h"
#include "net/http.h"
#include "net/passage_fields.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::net {

// Connects to the server behind us.
using StreamSource = std::function<Task<Result<Stream>>()>;

// One request, one inner connection. Both messages are parsed and written anew, so nothing but this
// request can reach the inner server; only after both sides have agreed on another protocol (101)
// are bytes copied blindly. Everything is streamed, and a slow side slows the other. Ends when the
// client goes. Fails where nothing has been answered, or where an answer that has begun must be
// given up.
Task<Result<>> pass(const RequestHead& head, Body& body, Response& response, Onward onward,
                    StreamSource source);

}  // namespace cay::net
