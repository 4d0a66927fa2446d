#include "net/stream.h"

#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "net/wire.h"
#include "sys/socket.h"
#include "testing/loop_thread.h"
#include "testing/raw_client.h"

namespace cay::net {
namespace {

using cay::testing::LoopThread;
using cay::testing::RawClient;
using cay::testing::RawListener;

// Relays between connections to two listeners, with bytes already received on the first.
Task<> relayBetween(uint16_t a, uint16_t b, std::string received) {
  auto first = co_await dialLoopback(a);
  auto second = co_await dialLoopback(b);
  if (!first || !second) co_return;
  first->buffered = std::move(received);
  co_await relay(*first, *second);
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

// A stream whose other end is passed on in this process, and the socket of that end.
struct PassedOn {
  explicit PassedOn(LoopThread& loop) : cut(std::make_shared<bool>(false)) {
    auto pair = sys::streamPair();
    if (!pair) throw std::runtime_error(pair.error().message);
    Socket socket(loop.io().get_executor());
    socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), pair->first.release());
    stream.emplace(Stream{std::move(socket), "held", cut});
    other = std::move(pair->second);
  }
  Cut cut;
  std::optional<Stream> stream;
  Fd other;
};

Task<ssize_t> receiveOne(Wire& wire) {
  char byte;
  co_return co_await wire.receive({&byte, 1});
}

TEST(CutStream, EndsAsAReset) {
  LoopThread loop;
  for (const bool cut : {false, true}) {
    PassedOn passed(loop);
    Wire wire(*std::move(passed.stream));
    EXPECT_EQ(wire.input().view(), "held");
    *passed.cut = cut;
    passed.other.reset();
    EXPECT_EQ(loop.await(receiveOne(wire)), cut ? -ECONNRESET : 0);
  }
}

TEST(CutStream, IsCutByTheSideThatGivesUpToo) {
  LoopThread loop;
  PassedOn passed(loop);
  Wire wire(*std::move(passed.stream));
  wire.resetOnClose();
  EXPECT_TRUE(*passed.cut);
  const Stream released = wire.release();
  EXPECT_EQ(released.buffered, "held");
  EXPECT_EQ(released.cut, passed.cut);
}

TEST(DialLoopback, SaysThatNothingListens) {
  LoopThread loop;
  uint16_t port = 0;
  {
    port = RawListener().port();
  }
  const auto stream = loop.await(dialLoopback(port));
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, Code::kUnreachable);
  EXPECT_EQ(stream.error().message, "nothing listens on port " + std::to_string(port));
}

}  // namespace
}  // namespace cay::net
