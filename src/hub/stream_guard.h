// What a stream of events does between two events: sends what waits or a sign of life, notices that
// the client has gone, and sleeps until the job changes.
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "host/disconnect_watch.h"
#include "net/event.h"
#include "net/event_stream.h"
#include "net/handler.h"
#include "net/task.h"

namespace cay::hub {

class StreamGuard {
 public:
  // The longest sleep, so that nothing has to be woken by everything.
  static constexpr Millis kSlice{1'000};

  // All must outlive it.
  StreamGuard(net::Response& response, net::EventStream& events, net::Event& job)
      : watch_(response, job), events_(events), job_(job) {}

  void start(const net::Executor& executor) { watch_.start(executor); }
  // kClosed if the client has gone.
  net::Task<Result<>> check();
  // The same, and then sleeps until the job changes, for a slice at most.
  net::Task<Result<>> pause();
  // Must be awaited before the request's objects die.
  net::Task<> stop() { return watch_.stop(); }

 private:
  host::DisconnectWatch watch_;
  net::EventStream& events_;
  net::Event& job_;
};

}  // namespace cay::hub
