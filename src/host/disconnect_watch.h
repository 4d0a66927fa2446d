// Notices that a client has gone while its request is being worked on, and wakes whoever does the
// work.
#pragma once

#include <boost/asio/cancellation_signal.hpp>

#include "net/event.h"
#include "net/handler.h"
#include "net/task.h"

namespace cay::host {

class DisconnectWatch {
 public:
  // `wake` is notified once the client is gone. Both must outlive stop().
  DisconnectWatch(net::Response& response, net::Event& wake) : response_(response), wake_(wake) {}

  void start(const net::Executor& executor);
  [[nodiscard]] bool gone() const { return gone_; }
  // Must be awaited before the request's objects die, if start() was called.
  net::Task<> stop();

 private:
  net::Response& response_;
  net::Event& wake_;
  boost::asio::cancellation_signal cancel_;
  net::Event ended_;
  bool running_ = false;
  bool gone_ = false;
};

}  // namespace cay::host
