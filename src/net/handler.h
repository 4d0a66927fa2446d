// The narrow streaming interface between the HTTP server and everything that answers requests.
//
// A Handler gets the head, pulls the body if it wants it, and writes the answer. All calls happen
// on the server's thread. None of these objects outlives the call of handle().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::net {

// The body of a request. What a handler leaves unread is never taken for the next request: the
// server closes the connection after the answer, unless the rest is already here.
class Body {
 public:
  virtual ~Body() = default;
  // Reads at most buffer.size() bytes; 0 is the end. The first call sends "100 Continue" if the
  // client waits for it. Errors: kInvalid (broken framing), kTimeout (no byte for a minute),
  // kClosed.
  virtual Task<Result<size_t>> read(std::span<char> buffer) = 0;
  // Valid once read() has returned 0.
  [[nodiscard]] virtual const Fields& trailers() const = 0;
};

// The whole body, or kTooLarge (413) as soon as it is known to exceed `limit`.
Task<Result<std::string>> readAll(const RequestHead& head, Body& body, size_t limit);

// The answer to a request. Calls after a failed one fail too. A client that has gone gives kClosed.
// With HEAD the server drops the body and keeps the head as it would have been.
class Response {
 public:
  virtual ~Response() = default;

  // Sets the head; it leaves with the first piece of body. A Content-Length field decides the
  // framing, otherwise the body is chunked (HTTP/1.0: until close). Server-owned fields (Date,
  // Connection, Transfer-Encoding) must not be in it.
  virtual Result<> begin(ResponseHead head) = 0;
  // Sends a piece at once and waits until the kernel has taken it, so a slow client slows the
  // caller.
  virtual Task<Result<>> write(std::string_view data) = 0;
  // Sends `length` bytes of a file by sendfile. kInternal, after the connection is marked for
  // closing, if the file turns out shorter.
  virtual Task<Result<>> sendFile(int file, uint64_t offset, uint64_t length) = 0;
  // Ends the body; `last` and the end go out in one send.
  virtual Task<Result<>> finish(std::string_view last = {}) = 0;
  // The same with trailer fields, for a chunked answer.
  virtual Task<Result<>> finishWithTrailers(const Fields& trailers) = 0;
  // Gives up an answer that cannot be completed: the connection is cut, so that the client sees it.
  virtual void abort() = 0;

  [[nodiscard]] virtual bool begun() const = 0;
  // Completes when the client has closed or reset its connection. Only one such wait at a time; it
  // may be cancelled (awaitable_operators ||) and asked again.
  virtual Task<> disconnected() = 0;
  // Sends `head` (101) and hands the connection over, with what the client has already sent on it.
  virtual Task<Result<Stream>> upgrade(ResponseHead head) = 0;
  // The same for CONNECT: says (200) that the tunnel stands.
  virtual Task<Result<Stream>> tunnel() = 0;
};

// A whole answer in one send.
Task<Result<>> send(Response& response, ResponseHead head, std::string_view body);
Task<Result<>> sendJson(Response& response, int status, std::string_view json);
// {"error": …} with the status of the error's code.
Task<Result<>> sendError(Response& response, const Error& error);

class Handler {
 public:
  virtual ~Handler() = default;
  virtual Task<> handle(const RequestHead& head, Body& body, Response& response) = 0;
};

}  // namespace cay::net
