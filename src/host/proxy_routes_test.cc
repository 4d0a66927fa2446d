#include "host/proxy_routes.h"

#include <gmock/gmock.h>

#include <thread>

#include "net/status.h"
#include "testing/test_server.h"

namespace cay::host {
namespace {

using cay::testing::RawClient;
using cay::testing::RawListener;
using cay::testing::TestServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

net::RequestHead request(std::string target) {
  net::RequestHead head;
  head.target = std::move(target);
  return head;
}

TEST(ProxyTarget, KeepsPathAndQueryAsTheyCame) {
  const auto target =
      proxyTarget("/proxy/8080/a%2Fb/../c//", request("/v1/proxy/8080/a%2Fb/../c//?x=%20&y=?"));
  ASSERT_TRUE(target);
  EXPECT_EQ(target->port, 8080);
  EXPECT_EQ(target->target, "/a%2Fb/../c//?x=%20&y=?");
  EXPECT_EQ(proxyTarget("/proxy/1", request("/v1/proxy/1"))->target, "/");
  EXPECT_EQ(proxyTarget("/proxy/65535", request("/v1/proxy/65535?"))->target, "/?");
}

TEST(ProxyTarget, RefusesWhatIsNoPort) {
  for (const char* path : {"/proxy", "/proxy/", "/proxy/0/", "/proxy/65536/", "/proxy/-1/",
                           "/proxy/80x/", "/proxy/%38080/", "/proxy/000080/", "/proxy//80"}) {
    EXPECT_FALSE(proxyTarget(path, request(path))) << path;
  }
}

// What the host's router does around a route.
class ProxyOnly final : public net::Handler {
 public:
  net::Task<> handle(const net::RequestHead& head, net::Body& body,
                     net::Response& response) override {
    if (!head.path.starts_with("/v1/proxy")) {
      (void)co_await net::send(response, {}, "own route " + head.path);
      co_return;
    }
    Call call{.head = head,
              .body = body,
              .response = response,
              .path = std::string_view(head.path).substr(3),
              .query = {},
              .allowed = {}};
    const auto done = co_await proxy(call, dialer_, ownPort);
    if (done) co_return;
    if (response.begun()) {
      response.abort();
    } else {
      (void)co_await net::sendError(response, done.error());
    }
  }

  uint16_t ownPort = 0;

 private:
  net::LoopbackDialer dialer_;
};

class ProxyTest : public ::testing::Test {
 protected:
  std::string path(std::string_view rest = "/") const {
    return "/v1/proxy/" + std::to_string(inner_.port()) + std::string(rest);
  }
  // Sends a request and gives the inner server's end of its connection.
  RawClient passed(RawClient& client, std::string_view request) {
    client.send(request);
    auto server = inner_.accept();
    if (!server) throw std::runtime_error("no inner connection");
    return *std::move(server);
  }

  ProxyOnly handler_;
  TestServer server_{handler_};
  RawListener inner_;
};

TEST_F(ProxyTest, PassesOneRequestAndItsAnswer) {
  RawClient client = server_.connect();
  RawClient inner = passed(client, "GET " + path("/a%2Fb?q=%20") +
                                       " HTTP/1.1\r\nHost: x.example\r\nX-D: 1\r\nX-D: 2\r\n\r\n");
  EXPECT_EQ(inner.receiveUntil("\r\n\r\n"),
            "GET /a%2Fb?q=%20 HTTP/1.1\r\nHost: x.example\r\nX-D: 1\r\nX-D: 2\r\n"
            "Connection: close\r\n\r\n");
  inner.send("HTTP/1.1 200 Fine\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(client.receiveAnswer(),
            "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(inner.receiveToEnd(), "");
  // The client's own connection goes on.
  EXPECT_THAT(client.ask("GET /v1/x HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("own route /v1/x"));
}

TEST_F(ProxyTest, TheNextRequestNeverReachesTheInnerServer) {
  constexpr std::string_view kSecrets =
      "Authorization: Bearer secret\r\nX-Sandbox-Token: secret\r\nx-sandbox-token: secret\r\n";
  // The inner server promises less than it takes, so as to be sent more; it records every byte.
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok",
        "HTTP/1.1 204 No Content\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}) {
    RawClient client = server_.connect();
    RawClient inner =
        passed(client, "GET " + path() + " HTTP/1.1\r\nHost: x\r\n" + std::string(kSecrets) +
                           "\r\nPOST /v1/exec HTTP/1.1\r\nHost: x\r\n" + std::string(kSecrets) +
                           "Content-Length: 12\r\n\r\n{\"cmd\":\"id\"}");
    inner.send(answer);
    const std::string seen = inner.receiveToEnd();
    EXPECT_EQ(seen, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") << answer;
    EXPECT_THAT(client.receiveUntil("own route /v1/exec"), EndsWith("own route /v1/exec"));
  }
}

TEST_F(ProxyTest, StreamsBodiesBothWaysWithTheirFramingAndTrailers) {
  RawClient client = server_.connect();
  RawClient inner = passed(client, "POST " + path() +
                                       " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       "3\r\none\r\n");
  inner.receiveUntil("\r\n\r\n");
  EXPECT_EQ(inner.receiveUntil("one\r\n"), "3\r\none\r\n");
  inner.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_THAT(client.receiveUntil("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked\r\n"));
  // Piece by piece: each side sees the other's before it sends its next.
  inner.send("5\r\nfirst\r\n");
  EXPECT_EQ(client.receiveUntil("first\r\n"), "5\r\nfirst\r\n");
  client.send("3\r\ntwo\r\n0\r\nX-Sum: 1\r\nX-Sandbox-Token: secret\r\n\r\n");
  EXPECT_EQ(inner.receiveUntil("\r\n\r\n"), "3\r\ntwo\r\n0\r\nX-Sum: 1\r\n\r\n");
  inner.send("0\r\nX-Total: 2\r\n\r\n");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), "0\r\nX-Total: 2\r\n\r\n");
}

TEST_F(ProxyTest, SendsABodyOfKnownLengthAsSuch) {
  RawClient client = server_.connect();
  const std::string body(3 << 20, 'b');
  const std::jthread sender([&] {
    client.send("PUT " + path() + " HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
  });
  auto inner = inner_.accept();
  ASSERT_TRUE(inner);
  EXPECT_THAT(inner->receiveUntil("\r\n\r\n"), HasSubstr("Content-Length: 3145728\r\n"));
  EXPECT_EQ(inner->receiveExactly(body.size()), body);
  inner->send("HTTP/1.1 201 Created\r\n\r\nuntil the end");
  inner->close();
  EXPECT_THAT(client.receiveUntil("0\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 201 Created\r\n"), HasSubstr("until the end")));
}

TEST_F(ProxyTest, PassesAnAnswerThatComesBeforeTheBodyIsRead) {
  RawClient client = server_.connect();
  RawClient inner = passed(
      client, "POST " + path() + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  inner.receiveUntil("\r\n\r\n");
  inner.send("HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbig!");
  EXPECT_THAT(client.receiveAnswer(),
              AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("Connection: close"), EndsWith("big!")));
}

TEST_F(ProxyTest, AsksForTheBodyItself) {
  RawClient client = server_.connect();
  RawClient inner = passed(client, "POST " + path() +
                                       " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"
                                       "Expect: 100-continue\r\n\r\n");
  EXPECT_THAT(inner.receiveUntil("\r\n\r\n"), Not(HasSubstr("Expect")));
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_EQ(inner.receiveExactly(2), "ok");
}

TEST_F(ProxyTest, AnswersHeadWithoutABody) {
  RawClient client = server_.connect();
  for (const char* fields : {"Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"}) {
    RawClient inner = passed(client, "HEAD " + path() + " HTTP/1.1\r\nHost: x\r\n\r\n");
    inner.send("HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n");
    EXPECT_EQ(client.receiveUntil("\r\n\r\n"),
              "HTTP/1.1 200 OK\r\n" + std::string(fields) + "\r\n");
  }
}

TEST_F(ProxyTest, RelaysAfterAnAgreedUpgrade) {
  RawClient client = server_.connect();
  RawClient inner = passed(client, "GET " + path("/ws") +
                                       " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                                       "Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n"
                                       "Authorization: Bearer secret\r\n\r\nearly ");
  EXPECT_EQ(inner.receiveUntil("\r\n\r\n"),
            "GET /ws HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key: k\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\n\r\n");
  inner.send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Accept: a\r\n\r\nhello ");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: a\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
  client.send("bytes");
  EXPECT_EQ(inner.receiveExactly(11), "early bytes");
  inner.send("there");
  EXPECT_EQ(client.receiveExactly(11), "hello there");
  client.close();
  EXPECT_EQ(inner.receiveToEnd(), "");
  inner.close();
  EXPECT_TRUE(server_.awaitConnections(0));
}

TEST_F(ProxyTest, ARefusedUpgradeIsAnOrdinaryAnswer) {
  RawClient client = server_.connect();
  RawClient inner = passed(client, "GET " + path() +
                                       " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                                       "Upgrade: websocket\r\n\r\n");
  inner.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("\r\n\r\nno"));
  EXPECT_EQ(inner.receiveToEnd().find("GET", 3), std::string::npos);
  EXPECT_THAT(client.ask("GET /v1/x HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("own route /v1/x"));
}

TEST_F(ProxyTest, SaysThatNothingListens) {
  uint16_t port = 0;
  {
    port = RawListener().port();
  }
  RawClient client = server_.connect();
  EXPECT_THAT(client.ask("GET /v1/proxy/" + std::to_string(port) + "/ HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 502 "),
                    HasSubstr("{\"error\":\"nothing listens on port " + std::to_string(port))));
  EXPECT_THAT(client.ask("GET /v1/proxy/99999/ HTTP/1.1\r\nHost: x\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(ProxyTest, RefusesToTalkToItself) {
  server_.loop().call([&] { handler_.ownPort = server_.port(); });
  EXPECT_THAT(server_.connect().ask("GET /v1/proxy/" + std::to_string(server_.port()) +
                                    "/ HTTP/1.1\r\nHost: x\r\n\r\n"),
              StartsWith("HTTP/1.1 403 "));
}

TEST_F(ProxyTest, GivesBadGatewayForAnswersThatAreNone) {
  for (const char* answer : {"", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-",
                             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
                             "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"}) {
    RawClient client = server_.connect();
    RawClient inner = passed(client, "GET " + path() + " HTTP/1.1\r\nHost: x\r\n\r\n");
    inner.receiveUntil("\r\n\r\n");
    inner.send(answer);
    inner.close();
    EXPECT_THAT(client.receiveAnswer(), AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("\"error\"")));
  }
}

TEST_F(ProxyTest, CutsTheClientOffWhenTheInnerServerBreaksOff) {
  for (const char* answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\nzz"}) {
    RawClient client = server_.connect();
    RawClient inner = passed(client, "GET " + path() + " HTTP/1.1\r\nHost: x\r\n\r\n");
    inner.receiveUntil("\r\n\r\n");
    inner.send(answer);
    inner.close();
    const std::string received = client.receiveToEnd();
    EXPECT_THAT(received, AllOf(HasSubstr("12345"), Not(HasSubstr("\r\n0\r\n\r\n"))));
  }
}

TEST_F(ProxyTest, TheInnerConnectionEndsWithTheClient) {
  RawClient waiting = server_.connect();
  RawClient inner = passed(waiting, "GET " + path() + " HTTP/1.1\r\nHost: x\r\n\r\n");
  inner.receiveUntil("\r\n\r\n");
  waiting.close();
  EXPECT_EQ(inner.receiveToEnd(), "");

  RawClient uploading = server_.connect();
  RawClient second = passed(
      uploading, "POST " + path() + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345");
  second.receiveUntil("12345");
  uploading.close();
  EXPECT_EQ(second.receiveToEnd(), "");

  RawClient reading = server_.connect();
  RawClient third = passed(reading, "GET " + path() + " HTTP/1.1\r\nHost: x\r\n\r\n");
  third.receiveUntil("\r\n\r\n");
  third.send("HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n");
  reading.receiveUntil("data: 1\n\n");
  reading.close();
  EXPECT_EQ(third.receiveToEnd(), "");
}

TEST_F(ProxyTest, ABrokenRequestBodyIsTheClientsFault) {
  RawClient client = server_.connect();
  RawClient inner = passed(client, "POST " + path() +
                                       " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       "zz\r\nGET /smuggled HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.receiveToEnd(), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(inner.receiveToEnd(), Not(HasSubstr("smuggled")));
}

}  // namespace
}  // namespace cay::host
