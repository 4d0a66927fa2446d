// Server-sent events to one client.
//
// Events leave together when the caller has no more for now, or when there are many. Silence is
// filled with comments, often enough for those who give up on a silent stream after two minutes,
// and rarely enough for those who take five silent seconds for the end of what there is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "net/handler.h"
#include "net/task.h"

namespace cay::net {

class EventStream {
 public:
  static constexpr Millis kKeepAlive{20'000};

  explicit EventStream(Response& response, Millis keepAlive = kKeepAlive)
      : response_(response), keepAlive_(keepAlive) {}

  // Adds what marks it as a stream of events, and sends the head at once.
  Task<Result<>> begin(ResponseHead head);
  // `data` must be one line, also by Unicode's rules: JSON that is ASCII. `type` may be empty.
  Task<Result<>> event(std::string_view type, std::string_view data);
  // Sends what waits, or a comment if nothing has been sent for too long.
  Task<Result<>> flush();
  Task<Result<>> end();

 private:
  Response& response_;
  Millis keepAlive_;
  int64_t sentMs_ = 0;
  std::string waiting_;
};

}  // namespace cay::net
