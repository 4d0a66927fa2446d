#include "hub/connect_proxy.h"

#include <gmock/gmock.h>

#include <thread>

#include "hub/edge_fixture.h"
#include "sys/socket.h"

namespace cay::hub {
namespace {

using cay::testing::RawClient;
using cay::testing::RawListener;
using engine::Kind;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kOpen = "HTTP/1.1 200 OK\r\n\r\n";

std::string connectTo(const std::string& target, const std::string& authorization) {
  return "CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n" +
         (authorization.empty() ? "" : "Proxy-Authorization: " + authorization + "\r\n") + "\r\n";
}

std::string basic(const std::string& token) {
  return "Basic " + base64Encode("cay:" + token);
}

TEST(ConnectProxy, WantsAToken) {
  TestEdge edge;
  RawListener other;
  const std::string target = "127.0.0.1:" + std::to_string(other.port());
  RawClient client = edge.plain();
  for (const std::string& authorization :
       {std::string(), basic("wrong"), std::string("Bearer wrong"), basic(""), edge.alice,
        basic(edge.alice) + "\r\n" + "Proxy-Authorization: " + basic(edge.alice)}) {
    EXPECT_THAT(client.ask(connectTo(target, authorization)),
                AllOf(StartsWith("HTTP/1.1 407 "),
                      HasSubstr("\r\nProxy-Authenticate: Basic realm=\"cay\"\r\n")))
        << authorization;
  }
  // A token for the API in its own field opens no tunnel.
  EXPECT_THAT(client.ask("CONNECT " + target + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " +
                         edge.alice + "\r\n\r\n"),
              StartsWith("HTTP/1.1 407 "));
  EXPECT_FALSE(other.accept(100));
}

TEST(ConnectProxy, TunnelsForEveryRoleAndScheme) {
  TestEdge edge;
  RawListener other;
  const std::string target = "127.0.0.1:" + std::to_string(other.port());
  for (const std::string& authorization :
       {basic(edge.proxyToken), basic(edge.alice), "Bearer " + edge.admin}) {
    RawClient client = edge.plain();
    client.send(connectTo(target, authorization) + "early ");
    EXPECT_EQ(client.receiveUntil("\r\n\r\n"), kOpen);
    auto server = other.accept();
    ASSERT_TRUE(server);
    client.send("bytes");
    EXPECT_EQ(server->receiveExactly(11), "early bytes");
    server->send("back");
    EXPECT_EQ(client.receiveExactly(4), "back");
    client.shutDownSending();
    EXPECT_EQ(server->receiveToEnd(), "");
    server->send("more");
    EXPECT_EQ(client.receiveExactly(4), "more") << "the other half lives on";
  }
}

TEST(ConnectProxy, NamesOfOursEndAtOurTls) {
  TestEdge edge;
  RawListener inner;
  edge.add("job1", Kind::kPlain, {8000});
  edge.start("job1", 8000, inner.port());
  for (const std::string& port : {std::string("443"), std::to_string(edge.address().tlsPort)}) {
    RawClient raw = edge.plain();
    raw.send(connectTo("job1--8000.cay.localhost:" + port, basic(edge.proxyToken)));
    ASSERT_EQ(raw.receiveUntil("\r\n\r\n"), kOpen);
    OpensslClient client(std::move(raw), edge.caFile(), "job1--8000.cay.localhost");
    ASSERT_TRUE(client.connect());
    // The proxy's token opens the tunnel, not the job.
    ASSERT_TRUE(
        client.send("GET / HTTP/1.1\r\nHost: job1--8000.cay.localhost\r\nAuthorization: Bearer " +
                    edge.proxyToken + "\r\n\r\n"));
    EXPECT_THAT(client.receiveSome(), StartsWith("HTTP/1.1 403 "));
    ASSERT_TRUE(
        client.send("GET / HTTP/1.1\r\nHost: job1--8000.cay.localhost\r\nAuthorization: Bearer " +
                    edge.alice + "\r\n\r\n"));
    auto server = inner.accept();
    ASSERT_TRUE(server);
    server->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    EXPECT_THAT(client.receiveSome(), EndsWith("ok"));
  }
}

TEST(ConnectProxy, NamesOfOursGoNowhereElse) {
  TestEdge edge;
  for (const char* target : {"job1--8000.cay.localhost:80", "cay.localhost:22", "CAY.localhost.:1",
                             "a.b.cay.localhost:8080"}) {
    EXPECT_THAT(edge.plain().ask(connectTo(target, basic(edge.alice))), StartsWith("HTTP/1.1 403 "))
        << target;
  }
}

TEST(ConnectProxy, SaysWhyAHostCannotBeReached) {
  TestEdge edge;
  uint16_t port = 0;
  {
    port = RawListener().port();
  }
  EXPECT_THAT(edge.plain().ask(connectTo("127.0.0.1:" + std::to_string(port), basic(edge.alice))),
              AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("Connection refused")));
  EXPECT_THAT(
      edge.plain().ask(connectTo("no-such-host.invalid:443", basic(edge.alice))),
      AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("'no-such-host.invalid' does not resolve")));
}

TEST(ConnectProxy, MakesNoTunnelsToOthersIfToldSo) {
  TestEdge edge({.tunnels = {.toOthers = false}});
  RawListener other;
  EXPECT_THAT(
      edge.plain().ask(connectTo("127.0.0.1:" + std::to_string(other.port()), basic(edge.alice))),
      StartsWith("HTTP/1.1 403 "));
  EXPECT_FALSE(other.accept(100));
}

// As a job's is, whose code may have got hold of a token.
TEST(ConnectProxy, MakesNoTunnelsForClientsOfOtherMachines) {
  TestEdge edge;
  RawListener other;
  auto pair = sys::streamPair();
  ASSERT_TRUE(pair);
  edge.loop().call([&] {
    net::Socket socket(edge.loop().io().get_executor());
    socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), pair->first.release());
    edge.server().adopt(net::Stream{std::move(socket), {}},
                        {.address = "10.233.0.1", .loopback = false, .tls = false});
  });
  RawClient client(std::move(pair->second));
  for (const std::string& host : {std::string("127.0.0.1"), std::string("[::1]")}) {
    for (const uint16_t port : {other.port(), edge.apiPort()}) {
      EXPECT_THAT(client.ask(connectTo(host + ":" + std::to_string(port), basic(edge.alice))),
                  StartsWith("HTTP/1.1 403 "));
    }
  }
  EXPECT_FALSE(other.accept(100));
  // Names of ours are for everybody with a token.
  client.send(connectTo("job1--8000.cay.localhost:443", basic(edge.alice)));
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), kOpen);
}

TEST(ConnectProxy, BoundsItsTunnelsInNumberAndIdleTime) {
  TestEdge edge({.tunnels = {.toOthers = true, .most = 1, .idle = Millis(1500)}});
  RawListener other;
  const std::string open =
      connectTo("127.0.0.1:" + std::to_string(other.port()), basic(edge.alice));
  RawClient first = edge.plain();
  first.send(open);
  EXPECT_EQ(first.receiveUntil("\r\n\r\n"), kOpen);
  EXPECT_THAT(edge.plain().ask(open), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(first.receiveToEnd(), "") << "after a while without a byte";
  RawClient next = edge.plain();
  EXPECT_TRUE(cay::testing::eventually([&] {
    next = edge.plain();
    next.send(open);
    return next.receiveUntil("\r\n\r\n") == kOpen;
  }));
}

class ProxyBehindTest : public ::testing::Test {
 protected:
  PreviousProxy previous() const {
    return {.host = "127.0.0.1",
            .port = proxy_.port(),
            .authorization = "Basic b2xk",
            .without = {"direct.example", "127.0.0.1"}};
  }
  RawListener proxy_;
  TestEdge edge_{{.tunnels = {}, .proxy = previous()}};
};

TEST_F(ProxyBehindTest, LeadsOnToTheMachinesOwnProxy) {
  RawClient client = edge_.plain();
  client.send(connectTo("example.com:443", basic(edge_.alice)));
  auto proxy = proxy_.accept();
  ASSERT_TRUE(proxy);
  EXPECT_EQ(proxy->receiveUntil("\r\n\r\n"),
            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n"
            "Proxy-Authorization: Basic b2xk\r\n\r\n");
  proxy->send("HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\nhello");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), kOpen);
  EXPECT_EQ(client.receiveExactly(5), "hello");
  client.send("bytes");
  EXPECT_EQ(proxy->receiveExactly(5), "bytes");
}

TEST_F(ProxyBehindTest, PassesItsRefusalOn) {
  RawClient client = edge_.plain();
  client.send(connectTo("example.com:443", basic(edge_.alice)));
  auto proxy = proxy_.accept();
  ASSERT_TRUE(proxy);
  proxy->send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_THAT(client.receiveAnswer(), AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("answered 403"),
                                            HasSubstr("example.com")));
}

TEST_F(ProxyBehindTest, IsNotAskedForWhatIsReachedWithoutIt) {
  RawListener other;
  RawClient client = edge_.plain();
  client.send(connectTo("127.0.0.1:" + std::to_string(other.port()), basic(edge_.alice)));
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), kOpen);
  EXPECT_TRUE(other.accept());
  // Names of ours are not for it either.
  RawClient own = edge_.plain();
  own.send(connectTo("job1--8000.cay.localhost:443", basic(edge_.alice)));
  EXPECT_EQ(own.receiveUntil("\r\n\r\n"), kOpen);
  EXPECT_FALSE(proxy_.accept(100));
}

}  // namespace
}  // namespace cay::hub
