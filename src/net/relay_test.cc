#include "net/relay.h"

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "testing/loop_thread.h"
#include "testing/raw_client.h"

namespace cay::net {
namespace {

using cay::testing::LoopThread;
using cay::testing::RawClient;
using cay::testing::RawListener;

// Relays between connections to two listeners, with bytes already received on the first.
Task<> relayBetween(uint16_t a, uint16_t b, std::string received,
                    Millis idleLimit = Event::kForever) {
  auto first = co_await dialLoopback(a);
  auto second = co_await dialLoopback(b);
  if (!first || !second) co_return;
  first->buffered = std::move(received);
  co_await relay(*first, *second, idleLimit);
}

class RelayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    done_ = boost::asio::co_spawn(loop_.io(), relayBetween(a_.port(), b_.port(), "early "),
                                  boost::asio::use_future);
    left_ = a_.accept();
    right_ = b_.accept();
    ASSERT_TRUE(left_ && right_);
  }
  bool ends() { return done_.wait_for(std::chrono::seconds(10)) == std::future_status::ready; }

  LoopThread loop_;
  RawListener a_;
  RawListener b_;
  std::future<void> done_;
  std::optional<RawClient> left_;
  std::optional<RawClient> right_;
};

TEST_F(RelayTest, CopiesBothWaysAndPassesHalfClosesOn) {
  left_->send("hello");
  EXPECT_EQ(right_->receiveExactly(11), "early hello");
  left_->shutDownSending();
  EXPECT_EQ(right_->receiveToEnd(), "");
  EXPECT_TRUE(right_->endedInOrder());
  // The other direction lives on.
  const std::string large(3 << 20, 'l');
  const std::jthread sender([&] {
    right_->send(large);
    right_->shutDownSending();
  });
  EXPECT_EQ(left_->receiveToEnd(), large);
  EXPECT_TRUE(left_->endedInOrder());
  EXPECT_TRUE(ends());
}

TEST_F(RelayTest, AResetEndsBothDirectionsAndIsPassedOn) {
  EXPECT_EQ(right_->receiveExactly(6), "early ");
  left_->reset();
  EXPECT_EQ(right_->receiveToEnd(), "");
  EXPECT_FALSE(right_->endedInOrder());
  EXPECT_TRUE(ends());
}

TEST(IdleRelay, EndsWhenNothingHasComeForTooLong) {
  LoopThread loop;
  RawListener a;
  RawListener b;
  constexpr Millis kLimit{1000};
  auto done = boost::asio::co_spawn(loop.io(), relayBetween(a.port(), b.port(), "", kLimit),
                                    boost::asio::use_future);
  auto left = a.accept();
  auto right = b.accept();
  ASSERT_TRUE(left && right);
  const int64_t begun = monotonicMs();
  // Either side keeps it alive for both.
  for (int i = 0; i < 4; ++i) {
    std::this_thread::sleep_for(kLimit / 2);
    (i % 2 == 0 ? left : right)->send("x");
    EXPECT_EQ((i % 2 == 0 ? right : left)->receiveExactly(1), "x");
  }
  EXPECT_EQ(left->receiveToEnd(), "");
  EXPECT_EQ(right->receiveToEnd(), "");
  EXPECT_GE(monotonicMs() - begun, 3 * kLimit.count());
  done.get();
}

}  // namespace
}  // namespace cay::net
