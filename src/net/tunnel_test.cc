// CONNECT, connections that others have accepted, and who is at the other end.
#include <gmock/gmock.h>

#include "net/await.h"
#include "net/peer.h"
#include "net/wire.h"
#include "sys/socket.h"
#include "testing/test_server.h"

namespace cay::net {
namespace {

using cay::testing::RawClient;
using cay::testing::RawListener;
using cay::testing::TestServer;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Tunnels lead back to the client itself, for those that say the word.
class Proxy final : public Handler {
 public:
  Task<> handle(const RequestHead& head, Body& /*body*/, Response& response) override {
    if (head.method == "CONNECT" && head.fields.get("proxy-authorization") != "word") {
      ResponseHead refusal{.status = 407, .fields = {}};
      refusal.fields.add("Proxy-Authenticate", "Basic realm=\"cay\"");
      (void)co_await send(response, std::move(refusal), "no");
    } else if (head.method == "CONNECT" || head.path == "/tunnel") {
      auto stream = co_await response.tunnel();
      if (stream) co_await echo(*std::move(stream), head.target);
    } else if (head.path == "/cut") {
      (void)response.begin({});
      (void)co_await response.write("half");
      response.abort();
    } else {
      const std::string text = head.peer.address + (head.peer.loopback ? " loopback" : "") +
                               (head.peer.tls ? " tls" : "");
      (void)co_await send(response, {}, text);
    }
  }

 private:
  static Task<> echo(Stream stream, std::string target) {
    const std::string greeting = target + ": " + stream.buffered;
    (void)sys::send(stream.socket.native_handle(), Pieces{greeting}.rest(), sys::More::kNo);
    std::array<char, 100> bytes;
    const auto [error, count] =
        co_await stream.socket.async_receive(boost::asio::buffer(bytes), kAwait);
    (void)sys::send(stream.socket.native_handle(),
                    Pieces{std::string_view(bytes.data(), count)}.rest(), sys::More::kNo);
  }
};

ServerLimits allowing() {
  ServerLimits limits;
  limits.connects = Connects::kAllowed;
  return limits;
}

std::string connectTo(std::string_view target, bool withWord = true) {
  return "CONNECT " + std::string(target) + " HTTP/1.1\r\nHost: " + std::string(target) +
         (withWord ? "\r\nProxy-Authorization: word\r\n\r\n" : "\r\n\r\n");
}

TEST(Tunnel, HandsTheConnectionOverWithWhatCameEarly) {
  Proxy proxy;
  TestServer server(proxy, allowing());
  RawClient client = server.connect();
  client.send(connectTo("abc--80.cay.localhost:443") + "early");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n");
  EXPECT_EQ(client.receiveExactly(32), "abc--80.cay.localhost:443: early");
  client.send("later");
  EXPECT_EQ(client.receiveToEnd(), "later");
}

TEST(Tunnel, ARefusedOneLeavesTheConnectionUsable) {
  Proxy proxy;
  TestServer server(proxy, allowing());
  RawClient client = server.connect();
  EXPECT_THAT(client.ask(connectTo("a:1", false)), StartsWith("HTTP/1.1 407 "));
  client.send(connectTo("a:1"));
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), "HTTP/1.1 200 OK\r\n\r\n");
}

TEST(Tunnel, IsForConnectOnly) {
  Proxy proxy;
  TestServer server(proxy, allowing());
  EXPECT_THAT(server.connect().ask("GET /tunnel HTTP/1.1\r\nHost: a\r\n\r\n"),
              StartsWith("HTTP/1.1 500 "));
}

TEST(Tunnel, IsRefusedByServersThatDoNotAllowIt) {
  Proxy proxy;
  TestServer server(proxy);
  EXPECT_THAT(server.connect().ask(connectTo("a:1")), StartsWith("HTTP/1.1 405 "));
}

TEST(Peers, AreKnownByTheirAddress) {
  Proxy proxy;
  TestServer server(proxy);
  EXPECT_THAT(server.connect().ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
              HasSubstr("\r\n\r\n127.0.0.1 loopback"));
}

// The far end of a connection between two addresses of this machine.
Peer peerBetween(int family, const sockaddr* address, socklen_t length) {
  const auto listener = sys::listenTcp(address, length);
  if (!listener) return {.address = listener.error().message};
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&bound), &size);
  const Fd client(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&bound), size), 0);
  return peerOf(client.get());
}

TEST(Peers, OfTheLoopbackAreThoseOfItsAddresses) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(0x7f050607);
  Peer peer = peerBetween(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  EXPECT_EQ(peer.address, "127.5.6.7");
  EXPECT_TRUE(peer.loopback);

  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  peer = peerBetween(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  EXPECT_EQ(peer.address, "::1");
  EXPECT_TRUE(peer.loopback);

  // An IPv6 socket that speaks IPv4.
  RawListener listener;
  sockaddr_in6 mapped{};
  mapped.sin6_family = AF_INET6;
  mapped.sin6_port = htons(listener.port());
  ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
  const Fd client(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&mapped), sizeof mapped), 0);
  EXPECT_EQ(peerOf(client.get()).address, "127.0.0.1");
  EXPECT_TRUE(peerOf(client.get()).loopback);
}

TEST(Peers, WithoutAnAddressAreNotOfTheLoopback) {
  const auto pair = sys::streamPair();
  ASSERT_TRUE(pair);
  EXPECT_EQ(peerOf(pair->first.get()).address, "");
  EXPECT_FALSE(peerOf(pair->first.get()).loopback);
  EXPECT_FALSE(peerOf(-1).loopback);
}

class AdoptTest : public ::testing::Test {
 protected:
  // A blocking client whose other end the server has been given.
  RawClient adopted(TestServer& server, std::string buffered = {}, Cut cut = nullptr) {
    auto pair = sys::streamPair();
    if (!pair) throw std::runtime_error(pair.error().message);
    server.loop().call([&] {
      Socket socket(server.loop().io().get_executor());
      socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), pair->first.release());
      server.adopt(Stream{std::move(socket), std::move(buffered), std::move(cut)},
                   Peer{.address = "192.0.2.7", .loopback = false, .tls = true});
    });
    return RawClient(std::move(pair->second));
  }
  Proxy proxy_;
};

TEST_F(AdoptTest, ServesAConnectionLikeAnAcceptedOne) {
  TestServer server(proxy_);
  RawClient client = adopted(server);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(client.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
                HasSubstr("\r\n\r\n192.0.2.7 tls"));
  }
  EXPECT_EQ(server.connections(), 1U);
  server.stop();
  EXPECT_EQ(client.receiveToEnd(), "");
}

TEST_F(AdoptTest, BeginsWithWhatHasBeenRead) {
  TestServer server(proxy_);
  RawClient client = adopted(server, "GET / HTT");
  EXPECT_THAT(client.ask("P/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(AdoptTest, IsBoundByTheServersLimits) {
  ServerLimits limits;
  limits.maxConnections = 1;
  TestServer server(proxy_, limits);
  RawClient first = adopted(server);
  EXPECT_THAT(first.ask("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(adopted(server).receiveAnswer(), StartsWith("HTTP/1.1 503 "));
}

// An answer without a length ends with its connection, which must then not end in order.
TEST_F(AdoptTest, AnAnswerThatIsGivenUpCutsTheStream) {
  TestServer server(proxy_);
  const auto cut = std::make_shared<bool>(false);
  RawClient client = adopted(server, {}, cut);
  client.send("GET /cut HTTP/1.0\r\nHost: a\r\n\r\n");
  EXPECT_THAT(client.receiveToEnd(), HasSubstr("half"));
  EXPECT_TRUE(server.loop().call([&] { return *cut; }));
}

}  // namespace
}  // namespace cay::net
