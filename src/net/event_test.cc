#include "net/event.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <thread>

namespace cay::net {
namespace {

class EventTest : public ::testing::Test {
 protected:
  void wait(Millis limit) {
    boost::asio::co_spawn(io_, waiting(limit), boost::asio::detached);
    turn();
  }
  void turn() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_{1};
  Event event_;
  std::optional<bool> came_;

 private:
  Task<> waiting(Millis limit) { came_ = co_await event_.wait(limit); }
};

TEST_F(EventTest, WakesWhoeverWaits) {
  wait(Event::kForever);
  EXPECT_FALSE(came_);
  event_.notifyAll();
  turn();
  EXPECT_EQ(came_, true);
}

TEST_F(EventTest, TellsThatItDidNotCome) {
  wait(Millis(1));
  std::this_thread::sleep_for(Millis(20));
  turn();
  EXPECT_EQ(came_, false);
}

// Two timers run out in the same turn of the loop. The first one's task notifies the second's,
// which is no longer waiting for its timer but has not been resumed either.
TEST_F(EventTest, IsNotLostOnATaskWhoseTimeIsUpAndWhoseTurnIsNot) {
  Timer first(io_.get_executor());
  first.expires_after(Millis(1));
  first.async_wait([&](boost::system::error_code) { event_.notifyAll(); });
  wait(Millis(5));
  std::this_thread::sleep_for(Millis(50));
  turn();
  EXPECT_EQ(came_, true);
}

}  // namespace
}  // namespace cay::net
