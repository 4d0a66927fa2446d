#include "net/event.h"

#include <algorithm>

namespace cay::net {
namespace {

constexpr auto kToken = boost::asio::as_tuple(boost::asio::use_awaitable_t<Executor>());
// The time of a timer whose event has come. A timer that has run out cannot be cancelled any more,
// but its task may be resumed only after others have had their turn, and must hear of it.
constexpr Timer::time_point kNotified = Timer::time_point::min();

}  // namespace

Task<> sleepFor(Millis time) {
  Timer timer(co_await boost::asio::this_coro::executor);
  timer.expires_after(time);
  (void)co_await timer.async_wait(kToken);
}

Task<bool> Event::wait(Millis limit) {
  Timer timer(co_await boost::asio::this_coro::executor);
  if (limit == kForever) {
    timer.expires_at(Timer::time_point::max());
  } else {
    timer.expires_after(limit);
  }
  // Taken out again however the wait ends, also when the task is destroyed in mid-wait.
  struct Registration {
    std::vector<Timer*>& list;
    Timer* timer;
    Registration(std::vector<Timer*>& where, Timer* which) : list(where), timer(which) {
      list.push_back(timer);
    }
    ~Registration() { std::erase(list, timer); }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
  };
  const Registration registration(waiting_, &timer);
  const auto [error] = co_await timer.async_wait(kToken);
  co_return error || timer.expiry() == kNotified;
}

void Event::notifyAll() {
  for (Timer* timer : waiting_) timer->expires_at(kNotified);
}

}  // namespace cay::net
