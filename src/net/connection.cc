#include "net/connection.h"

#include <exception>
#include <utility>

#include "net/field_text.h"
#include "net/status.h"

namespace cay::net {

std::string closingAnswer(int status, std::string_view message) {
  const std::string body = errorBody(message);
  std::string answer;
  appendStatusLine(answer, status);
  answer.append("Content-Type: application/json\r\nContent-Length: ");
  answer.append(std::to_string(body.size())).append("\r\nConnection: close\r\n\r\n").append(body);
  return answer;
}

Connection::Connection(std::shared_ptr<ServerCore> core, Stream stream, Peer peer)
    : core_(std::move(core)),
      wire_(std::move(stream)),
      deadline_(core_->sweep, wire_.socket()),
      parser_(core_->limits.maxHeadBytes, core_->limits.connects) {
  head_.peer = std::move(peer);
  core_->connections.insert(this);
}

Connection::~Connection() {
  core_->connections.erase(this);
}

void Connection::closeIfIdle() {
  if (idle_) deadline_.expireNow();
}

Task<> Connection::serve() {
  Next next = core_->stopping ? Next::kClose : Next::kRequest;
  while (next == Next::kRequest) {
    next = co_await readHead();
    if (next == Next::kRequest) next = co_await answerRequest();
    if (next == Next::kRequest && core_->stopping) next = Next::kLinger;
  }
  if (next == Next::kLinger) co_await wire_.lingeringClose(deadline_);
}

Task<Connection::Next> Connection::readHead() {
  idle_ = wire_.input().empty();
  deadline_.arm(idle_ && !fresh_ ? core_->limits.idleTimeout : core_->limits.headTimeout);
  for (;;) {
    const auto parsed = parser_.parse(wire_.input().view(), head_);
    if (!parsed) co_return co_await refuse(parsed.error());
    if (*parsed > 0) {
      wire_.input().consume(*parsed);
      deadline_.disarm();
      idle_ = false;
      co_return Next::kRequest;
    }
    const ssize_t count = co_await wire_.fill();
    if (count <= 0) {
      if (!deadline_.expired() || idle_) co_return Next::kClose;
      const HeadError late{408, "the request head did not arrive in time"};
      co_return co_await refuse(late);
    }
    // From its first byte on the whole head has a limited time, however slowly it trickles in.
    if (idle_) deadline_.arm(core_->limits.headTimeout);
    idle_ = fresh_ = false;
  }
}

Task<Connection::Next> Connection::refuse(const HeadError& error) {
  idle_ = false;
  deadline_.reset();
  const std::string answer = closingAnswer(error.status, error.message);
  const StallLimit stall{deadline_, core_->limits.answerTimeout};
  const int sent = co_await wire_.send({answer}, sys::More::kNo, &stall);
  co_return sent == 0 ? Next::kLinger : Next::kClose;
}

Task<Connection::Next> Connection::answerRequest() {
  using Outcome = ResponseWriter::Outcome;
  RequestBody body(head_, wire_, deadline_, core_->limits.bodyTimeout);
  const AnswerContext context{.request = head_,
                              .body = body,
                              .wire = wire_,
                              .stall = {deadline_, core_->limits.answerTimeout},
                              .stopping = core_->stopping,
                              .workers = core_->workers,
                              .scratch = scratch_};
  ResponseWriter response(context);
  // The loop's boundary: an exception ends one request, not the program.
  try {
    co_await core_->handler.handle(head_, body, response);
  } catch (const std::exception&) {
    if (response.begun()) response.abort();
  }
  deadline_.reset();
  if (response.outcome() == Outcome::kNothing) {
    const std::string nothing = errorBody("the request was not answered");
    if (!co_await sendJson(response, 500, nothing)) co_return Next::kClose;
  }
  switch (response.outcome()) {
    case Outcome::kKeepAlive:
      co_return Next::kRequest;
    case Outcome::kClose:
      co_return head_.keepAlive || !body.complete() ? Next::kLinger : Next::kClose;
    case Outcome::kNothing:
    case Outcome::kCut:
      if (response.needsReset()) wire_.resetOnClose();
      co_return Next::kClose;
    case Outcome::kHandedOver:
      co_return Next::kDone;
  }
  co_return Next::kClose;
}

}  // namespace cay::net
