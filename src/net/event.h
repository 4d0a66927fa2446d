// Something that tasks can wait for: notifyAll() wakes all that wait at that moment. It carries no
// state of its own, so a task checks its condition before it waits; on one thread nothing can slip
// in between.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <vector>

#include "base/clock.h"
#include "net/task.h"

namespace cay::net {

using Timer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

// Sleeps; ends early when the task is cancelled.
Task<> sleepFor(Millis time);

class Event {
 public:
  static constexpr Millis kForever{INT64_MAX};

  // False if `limit` passed first.
  Task<bool> wait(Millis limit = kForever);
  void notifyAll();

 private:
  std::vector<Timer*> waiting_;
};

}  // namespace cay::net
