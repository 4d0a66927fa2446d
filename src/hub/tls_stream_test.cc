#include "hub/tls_stream.h"

#include <gmock/gmock.h>
#include <malloc.h>

#include <filesystem>
#include <future>
#include <thread>

#include "hub/certificates.h"
#include "hub/tls_fixture.h"
#include "hub/tls_session.h"
#include "net/wire.h"

namespace cay::hub {
namespace {

using cay::testing::RawClient;
using namespace std::literals;

constexpr size_t kMiB = size_t{1} << 20;

using TlsStreamTest = TlsTest;

// send() of a blocking socket, which takes what fits and waits for the rest.
void sendAll(RawClient& socket, const std::string& data, bool& sent) {
  sent = socket.send(data);
}

TEST_F(TlsStreamTest, CarriesBytesBothWays) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  EXPECT_STREQ(SSL_get_version(client->ssl()), "TLSv1.3");
  EXPECT_TRUE(client->send("question"));
  EXPECT_EQ(plain.socket.receiveExactly(8), "question");
  EXPECT_TRUE(plain.socket.send("answer"));
  EXPECT_EQ(client->receiveExactly(6), "answer");
  EXPECT_FALSE(loop_.call([&] { return *plain.cut; }));
}

TEST_F(TlsStreamTest, StartsWithWhatHasBeenReadAlready) {
  Connection connection(loop_);
  OpensslClient client(std::move(connection.client), ca_.ca.caFile(), kTestName);
  SSL_set_connect_state(client.ssl());
  // The greeting goes out and is taken by somebody else first.
  auto connecting = std::async(std::launch::async, [&] { return client.connect(); });
  std::string greeting;
  while (greeting.size() < 100) {
    std::array<char, 1000> piece;
    const ssize_t count =
        ::recv(connection.server->socket.native_handle(), piece.data(), piece.size(), 0);
    if (count > 0) greeting.append(piece.data(), static_cast<size_t>(count));
  }
  connection.server->buffered = greeting;
  auto stream = loop_.await(acceptTls(ca_.context, *std::move(connection.server)));
  EXPECT_TRUE(connecting.get());
  EXPECT_TRUE(stream);
}

TEST_F(TlsStreamTest, Carries64MiBFromAndToOpenssl) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  const std::string large = pattern(64 * kMiB);
  bool sent = false;
  {
    const std::jthread sender([&] { sent = client->send(large); });
    EXPECT_TRUE(plain.socket.receiveExactly(large.size()) == large);
  }
  EXPECT_TRUE(sent);
  sent = false;
  {
    const std::jthread sender([&] { sendAll(plain.socket, large, sent); });
    EXPECT_TRUE(client->receiveExactly(large.size()) == large);
  }
  EXPECT_TRUE(sent);
}

TEST_F(TlsStreamTest, Carries64MiBBothWaysAtATime) {
  Connection connection(loop_);
  const auto trusting = orThrow(TlsContext::client(ca_.ca.caFile()));
  auto accepted = accept(connection);
  net::Socket socket(loop_.io().get_executor());
  socket.assign(boost::asio::generic::stream_protocol(AF_INET, 0),
                duplicate(connection.client.fd()).release());
  connection.client.close();
  PlainEnd near(
      orThrow(loop_.await(connectTls(trusting, net::Stream{std::move(socket), {}}, kTestName))));
  PlainEnd far(*accepted.get());
  const std::string large = pattern(64 * kMiB);
  bool sentNear = false;
  bool sentFar = false;
  bool gotFar = false;
  {
    const std::jthread nearSender([&] {
      sendAll(near.socket, large, sentNear);
      near.socket.shutDownSending();
    });
    const std::jthread farSender([&] { sendAll(far.socket, large, sentFar); });
    const std::jthread farReader([&] { gotFar = far.socket.receiveToEnd() == large; });
    EXPECT_TRUE(near.socket.receiveExactly(large.size()) == large);
  }
  EXPECT_TRUE(sentNear && sentFar && gotFar);
  EXPECT_TRUE(far.socket.endedInOrder());
  far.socket.shutDownSending();
  EXPECT_EQ(near.socket.receiveToEnd(), "");
  EXPECT_TRUE(near.socket.endedInOrder());
  EXPECT_FALSE(loop_.call([&] { return *near.cut || *far.cut; }));
}

// Sends until the other side has taken nothing for a while.
size_t sendUntilStuck(RawClient& socket) {
  const std::string piece(64 * 1024, 'p');
  const timeval patience{.tv_sec = 0, .tv_usec = 300'000};
  ::setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  size_t total = 0;
  for (;;) {
    const ssize_t count = ::send(socket.fd(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (count <= 0) return total;
    total += static_cast<size_t>(count);
  }
}

TEST_F(TlsStreamTest, ASlowReaderHoldsTheSenderBackAndCostsLittleMemory) {
  constexpr int kConnections = 8;
  std::vector<std::unique_ptr<Connection>> connections;
  std::vector<std::optional<OpensslClient>> clients(kConnections);
  std::vector<PlainEnd> ends;
  for (int i = 0; i < kConnections; ++i) {
    connections.push_back(std::make_unique<Connection>(loop_, 16 * 1024));
    ends.push_back(serve(*connections.back(), clients[static_cast<size_t>(i)]));
  }
  const auto before = ::mallinfo2();
  std::vector<size_t> sent;
  sent.reserve(ends.size());
  for (PlainEnd& end : ends) sent.push_back(sendUntilStuck(end.socket));
  const auto after = ::mallinfo2();
  EXPECT_LT(after.uordblks + after.hblkhd,
            before.uordblks + before.hblkhd + kConnections * 100'000);
  for (int i = 0; i < kConnections; ++i) {
    // What the kernel's buffers take, which is not ours.
    EXPECT_LT(sent[static_cast<size_t>(i)], 8 * kMiB);
  }
  // Nothing of it is lost.
  ends[0].socket.shutDownSending();
  EXPECT_EQ(clients[0]->receiveToEnd().size(), sent[0]);
  EXPECT_TRUE(clients[0]->endedInOrder());
}

TEST_F(TlsStreamTest, AServerThatDoesNotReadHoldsTheClientBack) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  const auto before = ::mallinfo2();
  const timeval patience{.tv_sec = 0, .tv_usec = 300'000};
  ::setsockopt(client->socket().fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const std::string piece(16 * 1024, 'p');
  size_t total = 0;
  while (client->send(piece) && total < 64 * kMiB) total += piece.size();
  EXPECT_LT(total, 32 * kMiB);
  EXPECT_LT(::mallinfo2().uordblks, before.uordblks + 200'000);
  EXPECT_EQ(plain.socket.receiveExactly(total).size(), total);
}

// Answers go out while the question is still coming and nobody reads them: neither direction waits
// for the other.
TEST_F(TlsStreamTest, AStuckDirectionDoesNotStopTheOther) {
  Connection connection(loop_, 16 * 1024);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  (void)sendUntilStuck(plain.socket);
  const std::string large = pattern(4 * kMiB);
  bool sent = false;
  const std::jthread sender([&] { sent = client->send(large); });
  EXPECT_TRUE(plain.socket.receiveExactly(large.size()) == large);
}

TEST_F(TlsStreamTest, PassesHalfClosesOn) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  EXPECT_TRUE(client->send("the end"));
  client->endSending();
  EXPECT_EQ(plain.socket.receiveToEnd(), "the end");
  EXPECT_TRUE(plain.socket.endedInOrder());
  EXPECT_FALSE(loop_.call([&] { return *plain.cut; }));
  EXPECT_TRUE(plain.socket.send("and yet"));
  plain.socket.shutDownSending();
  EXPECT_EQ(client->receiveToEnd(), "and yet");
  EXPECT_TRUE(client->endedInOrder());
}

TEST_F(TlsStreamTest, PassesTheServersHalfCloseOn) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  plain.socket.shutDownSending();
  EXPECT_EQ(client->receiveToEnd(), "");
  EXPECT_TRUE(client->endedInOrder());
  EXPECT_EQ(client->socket().receiveToEnd(), "");  // and no more on TCP either
  EXPECT_TRUE(client->socket().endedInOrder());
  EXPECT_TRUE(client->send("still here"));
  EXPECT_EQ(plain.socket.receiveExactly(10), "still here");
}

TEST_F(TlsStreamTest, AnEndWithoutGoodbyeIsACut) {
  for (const bool reset : {false, true}) {
    Connection connection(loop_);
    std::optional<OpensslClient> client;
    PlainEnd plain = serve(connection, client);
    EXPECT_TRUE(client->send("all of i"));
    EXPECT_EQ(plain.socket.receiveExactly(8), "all of i");
    if (reset) {
      client->socket().reset();
    } else {
      client->socket().close();
    }
    EXPECT_EQ(plain.socket.receiveToEnd(), "");
    EXPECT_TRUE(loop_.call([&] { return *plain.cut; }));
  }
}

TEST_F(TlsStreamTest, ACutShowsToWhoeverReadsThePlainStream) {
  Connection connection(loop_);
  auto accepted = accept(connection);
  OpensslClient client(std::move(connection.client), ca_.ca.caFile(), kTestName);
  ASSERT_TRUE(client.connect());
  auto stream = accepted.get();
  ASSERT_TRUE(stream);
  client.socket().close();
  net::Wire wire(*std::move(stream));
  std::array<char, 10> piece;
  EXPECT_EQ(loop_.await(wire.receive(piece)), -ECONNRESET);
}

TEST_F(TlsStreamTest, BrokenRecordsAreACut) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  EXPECT_TRUE(client->socket().send("\x17\x03\x03\x00\x20"s + std::string(32, 'g')));
  EXPECT_EQ(plain.socket.receiveToEnd(), "");
  EXPECT_TRUE(loop_.call([&] { return *plain.cut; }));
  EXPECT_EQ(client->receiveToEnd(), "");
  EXPECT_FALSE(client->endedInOrder());
}

TEST_F(TlsStreamTest, AnAnswerThatWasGivenUpDoesNotEndInOrder) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  EXPECT_TRUE(plain.socket.send("half an ans"));
  EXPECT_EQ(client->receiveExactly(11), "half an ans");
  loop_.call([&] { *plain.cut = true; });
  plain.socket.close();
  EXPECT_EQ(client->receiveToEnd(), "");
  EXPECT_FALSE(client->endedInOrder());
}

TEST_F(TlsStreamTest, RenegotiationIsRefused) {
  Connection connection(loop_);
  auto accepted = accept(connection);
  OpensslClient client(std::move(connection.client), ca_.ca.caFile(), kTestName);
  SSL_set_max_proto_version(client.ssl(), TLS1_2_VERSION);
  ASSERT_TRUE(client.connect());
  auto stream = accepted.get();
  ASSERT_TRUE(stream);
  PlainEnd plain(*std::move(stream));
  EXPECT_EQ(SSL_renegotiate(client.ssl()), 1);
  EXPECT_NE(SSL_do_handshake(client.ssl()), 1);
}

TEST_F(TlsStreamTest, AskingForNewKeysWithoutReadingCostsNoMemory) {
  Connection connection(loop_, 4 * 1024);
  const int small = 4 * 1024;
  ::setsockopt(connection.client.fd(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  ::setsockopt(connection.server->socket.native_handle(), SOL_SOCKET, SO_RCVBUF, &small,
               sizeof small);
  std::optional<OpensslClient> client;
  PlainEnd plain = serve(connection, client);
  (void)sendUntilStuck(plain.socket);  // nothing more fits on the way back
  const auto before = ::mallinfo2();
  const timeval patience{.tv_sec = 0, .tv_usec = 300'000};
  ::setsockopt(client->socket().fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  int asked = 0;
  for (; asked < 200'000; ++asked) {
    if (SSL_key_update(client->ssl(), SSL_KEY_UPDATE_REQUESTED) != 1 ||
        SSL_do_handshake(client->ssl()) != 1) {
      break;
    }
  }
  EXPECT_LT(asked, 200'000);
  EXPECT_LT(::mallinfo2().uordblks, before.uordblks + 500'000);
}

TEST_F(TlsStreamTest, SmallAnswersAreNotHeldBack) {
  Connection connection(loop_);
  const Fd watched = duplicate(connection.server->socket.native_handle());
  std::optional<OpensslClient> client;
  const PlainEnd plain = serve(connection, client);
  int noDelay = 0;
  socklen_t length = sizeof noDelay;
  ASSERT_EQ(::getsockopt(watched.get(), IPPROTO_TCP, TCP_NODELAY, &noDelay, &length), 0);
  EXPECT_NE(noDelay, 0);
}

size_t openDescriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

bool becomes(size_t count) {
  for (int i = 0; i < 1000; ++i) {
    if (openDescriptors() <= count) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST_F(TlsStreamTest, AClientThatStaysIsLeftAloneWhenTheServerHasGone) {
  (void)Connection(loop_);  // what the loop itself needs is open now
  const size_t before = openDescriptors();
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  std::optional<PlainEnd> plain(serve(connection, client));
  EXPECT_TRUE(plain->socket.send("the last words"));
  plain.reset();
  EXPECT_EQ(client->receiveToEnd(), "the last words");
  EXPECT_TRUE(client->endedInOrder());
  // Its listener and its own socket are left.
  EXPECT_TRUE(becomes(before + 2));
}

TEST_F(TlsStreamTest, NothingIsLeftOfConnectionsThatEnded) {
  (void)Connection(loop_);  // what the loop itself needs is open now
  const size_t before = openDescriptors();
  for (int i = 0; i < 20; ++i) {
    Connection connection(loop_);
    std::optional<OpensslClient> client;
    const PlainEnd plain = serve(connection, client);
    if (i % 2 == 0) client->endSending();
  }
  EXPECT_TRUE(becomes(before));
}

TEST_F(TlsStreamTest, TheLastWordsReachAClientThatIsStillTalking) {
  Connection connection(loop_);
  std::optional<OpensslClient> client;
  std::optional<PlainEnd> plain(serve(connection, client));
  EXPECT_TRUE(plain->socket.send("no, thank you"));
  plain->socket.shutDownSending();
  EXPECT_TRUE(client->send(std::string(100'000, 'u')));
  (void)plain->socket.receiveExactly(100'000);
  plain.reset();
  EXPECT_TRUE(client->send(std::string(10'000, 'u')));
  EXPECT_EQ(client->receiveToEnd(), "no, thank you");
  EXPECT_TRUE(client->endedInOrder());
}

}  // namespace
}  // namespace cay::hub
