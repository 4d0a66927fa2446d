#include "net/stream.h"

#include <gmock/gmock.h>

#include "net/wire.h"
#include "sys/socket.h"
#include "testing/loop_thread.h"
#include "testing/raw_client.h"

namespace cay::net {
namespace {

using cay::testing::LoopThread;
using cay::testing::RawListener;

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
