// The conversation on one connection: keep-alive, pipelining, bodies, expectations, what goes
// wrong.
#include "net/server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <future>
#include <stdexcept>

#include "net/event.h"
#include "net/status.h"
#include "testing/test_server.h"

namespace cay::net {
namespace {

using cay::testing::RawClient;
using cay::testing::TestServer;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Routes final : public Handler {
 public:
  Task<> handle(const RequestHead& head, Body& body, Response& response) override {
    ++requests;
    if (head.path == "/echo") {
      co_await echo(head, body, response);
    } else if (head.path == "/gone") {
      co_await awaitDisconnect(response);
    } else if (head.path == "/switch") {
      co_await switchProtocol(head, response);
    } else if (head.path == "/throw") {
      throw std::runtime_error("broken handler");
    } else if (head.path != "/silent") {
      co_await send(response, {}, head.method + " " + head.target + "\n");
    }
  }

  std::atomic<int> requests = 0;
  std::promise<void> waiting;
  std::promise<void> gone;

 private:
  static Task<> echo(const RequestHead& head, Body& body, Response& response) {
    auto text = co_await readAll(head, body, 1 << 20);
    if (!text) {
      (void)co_await sendError(response, text.error());
      co_return;
    }
    for (const Field& trailer : body.trailers()) *text += trailer.name + "=" + trailer.value;
    (void)co_await send(response, {}, *text);
  }

  Task<> awaitDisconnect(Response& response) {
    using namespace boost::asio::experimental::awaitable_operators;
    // A cancelled wait must not spoil the one after it.
    co_await (response.disconnected() || sleepFor(Millis(1)));
    waiting.set_value();
    co_await response.disconnected();
    gone.set_value();
  }

  static Task<> switchProtocol(const RequestHead&, Response& response) {
    ResponseHead head{.status = 101, .fields = {}};
    head.fields.add("Upgrade", "shout");
    auto stream = co_await response.upgrade(std::move(head));
    if (!stream) {
      (void)co_await sendError(response, stream.error());
      co_return;
    }
    std::string text = stream->buffered;
    while (!text.ends_with('\n')) {
      char piece[64];
      const size_t count = co_await stream->socket.async_receive(
          boost::asio::buffer(piece), boost::asio::use_awaitable_t<Executor>());
      text.append(piece, count);
    }
    for (char& c : text) c = static_cast<char>(std::toupper(c));
    co_await boost::asio::async_write(stream->socket, boost::asio::buffer(text),
                                      boost::asio::use_awaitable_t<Executor>());
  }
};

class ServerTest : public ::testing::Test {
 protected:
  Routes routes_;
  TestServer server_{routes_};
};

TEST_F(ServerTest, KeepsAConnectionForManyRequests) {
  RawClient client = server_.connect();
  for (int i = 0; i < 100; ++i) {
    const std::string answer = client.ask("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(answer, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nGET /a\n");
  }
  EXPECT_EQ(server_.connections(), 1U);
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  RawClient client = server_.connect();
  client.send(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\ntwo"
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nthree\r\n0\r\n\r\n"
      "\r\nGET /4 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("GET /1\n"));
  EXPECT_THAT(client.receiveAnswer(), EndsWith("\r\n\r\ntwo"));
  EXPECT_THAT(client.receiveAnswer(), EndsWith("\r\n\r\nthree"));
  EXPECT_THAT(client.receiveAnswer(),
              AllOf(EndsWith("GET /4\n"), HasSubstr("Connection: close\r\n")));
  EXPECT_EQ(client.receiveToEnd(), "");
}

TEST_F(ServerTest, ReadsRequestsThatTrickleIn) {
  RawClient client = server_.connect();
  for (const char c : std::string_view("POST /echo HTTP/1.1\r\nHost: x\r\n"
                                       "Transfer-Encoding: chunked\r\n\r\n"
                                       "2\r\nab\r\n1\r\nc\r\n0\r\nX-Sum: 9\r\n\r\n")) {
    ASSERT_TRUE(client.send({&c, 1}));
  }
  EXPECT_THAT(client.receiveAnswer(), EndsWith("\r\n\r\nabcX-Sum=9"));
  EXPECT_THAT(client.ask("GET /next HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("GET /next\n"));
}

TEST_F(ServerTest, TakesLargeBodies) {
  RawClient client = server_.connect();
  const std::string body(1 << 20, 'b');
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n");
  client.send(body);
  EXPECT_THAT(client.receiveAnswer(), EndsWith("\r\n\r\n" + body));
}

TEST_F(ServerTest, AnswersHeadLikeGetWithoutTheBody) {
  RawClient client = server_.connect();
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
  EXPECT_THAT(client.receiveAnswer(), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(ServerTest, RefusesBadHeadsAndEndsTheConnectionInOrder) {
  const std::pair<const char*, int> cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 505},
      {"POST / HTTP/1.1\r\nHost: x\r\nExpect: x\r\nContent-Length: 1\r\n\r\n", 417},
      {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
       400},
  };
  for (const auto& [request, status] : cases) {
    RawClient client = server_.connect();
    client.send(request);
    const std::string answer = client.receiveToEnd();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(status))) << request;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(answer, HasSubstr("\r\n\r\n{\"error\":\""));
    EXPECT_EQ(answer.find("Content-Length"), answer.rfind("Content-Length")) << "a second answer";
    EXPECT_TRUE(client.endedInOrder());
  }
  EXPECT_EQ(routes_.requests, 0);
}

TEST_F(ServerTest, RefusesTooLargeHeads) {
  RawClient client = server_.connect();
  client.send("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(70'000, 'x'));
  EXPECT_THAT(client.receiveToEnd(), StartsWith("HTTP/1.1 431 "));
  EXPECT_TRUE(client.endedInOrder());
}

TEST_F(ServerTest, RefusesBodiesOverTheHandlersLimit) {
  RawClient announced = server_.connect();
  EXPECT_THAT(announced.ask("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 413 "), HasSubstr("Connection: close\r\n")));

  RawClient chunked = server_.connect();
  chunked.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "40000\r\n" + std::string(0x40000, 'c') + "\r\n";
  for (int i = 0; i < 5; ++i) chunked.send(chunk);
  EXPECT_THAT(chunked.receiveAnswer(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerTest, AnswersBrokenChunksWith400AndCloses) {
  RawClient client = server_.connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "zz\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = client.receiveToEnd();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, Not(HasSubstr("smuggled")));
  EXPECT_EQ(routes_.requests, 1);
}

TEST_F(ServerTest, SendsContinueOnlyWhenTheBodyIsWanted) {
  RawClient client = server_.connect();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("\r\n\r\nok"));

  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.receiveToEnd(),
              AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Connection: close\r\n")));
}

TEST_F(ServerTest, ClosesAfterAnAnswerThatLeftABodyUnread) {
  RawClient client = server_.connect();
  // More than the server discards, so that only a lingering close lets the answer through.
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n");
  client.send(std::string(100'000, 'x'));
  const std::string answer = client.receiveToEnd();
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Connection: close\r\n"),
                            EndsWith("POST /a\n")));
  EXPECT_TRUE(client.endedInOrder());
  EXPECT_EQ(routes_.requests, 1);
}

TEST_F(ServerTest, KeepsTheConnectionIfTheUnreadBodyIsAlreadyThere) {
  RawClient client = server_.connect();
  client.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
      "POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
      "GET /c HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("POST /a\n"));
  EXPECT_THAT(client.receiveAnswer(), EndsWith("POST /b\n"));
  EXPECT_THAT(client.receiveAnswer(), EndsWith("GET /c\n"));
}

TEST_F(ServerTest, AHandlerThatFailsGivesFiveHundred) {
  RawClient client = server_.connect();
  for (const char* path : {"/throw", "/silent"}) {
    EXPECT_THAT(client.ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n"),
                AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("{\"error\":")));
  }
}

TEST_F(ServerTest, HandlersLearnThatTheClientHasClosed) {
  RawClient client = server_.connect();
  client.send("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
  routes_.waiting.get_future().wait();
  client.close();
  EXPECT_EQ(routes_.gone.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
}

TEST_F(ServerTest, HandlersLearnThatTheClientHasReset) {
  RawClient client = server_.connect();
  client.send("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
  routes_.waiting.get_future().wait();
  client.reset();
  EXPECT_EQ(routes_.gone.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
}

TEST_F(ServerTest, WatchingTheClientLosesNoPipelinedRequest) {
  RawClient client = server_.connect();
  client.send("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
  routes_.waiting.get_future().wait();
  // More than the server keeps for later: it must still notice the end behind it.
  const std::string request = "GET /" + std::string(1000, 'p') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  for (int i = 0; i < 100; ++i) client.send(request);
  auto gone = routes_.gone.get_future();
  EXPECT_EQ(gone.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  client.shutDownSending();
  EXPECT_EQ(gone.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  // The handler gave no answer, so the requests behind it are answered after a 500.
  const std::string answers = client.receiveToEnd();
  EXPECT_THAT(answers, StartsWith("HTTP/1.1 500 "));
  size_t served = 0;
  for (size_t at = answers.find("200 OK"); at != std::string::npos;
       at = answers.find("200 OK", at + 1)) {
    ++served;
  }
  EXPECT_EQ(served, 100U);
}

TEST_F(ServerTest, HandsTheConnectionOverWithWhatCameAlready) {
  RawClient client = server_.connect();
  client.send(
      "GET /switch HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: shout\r\n\r\nhello ");
  EXPECT_EQ(client.receiveUntil("\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: Upgrade\r\n\r\n");
  client.send("world\n");
  EXPECT_EQ(client.receiveToEnd(), "HELLO WORLD\n");
  EXPECT_TRUE(server_.awaitConnections(0));
}

TEST_F(ServerTest, StopsGracefully) {
  RawClient idle = server_.connect();
  idle.ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  RawClient busy = server_.connect();
  busy.send("GET /gone HTTP/1.1\r\nHost: x\r\n\r\n");
  routes_.waiting.get_future().wait();
  server_.stop();
  EXPECT_EQ(idle.receiveToEnd(), "");
  EXPECT_TRUE(server_.awaitConnections(1));
  EXPECT_THROW(server_.connect(), std::runtime_error);
  busy.shutDownSending();
  EXPECT_THAT(busy.receiveToEnd(),
              AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("Connection: close\r\n")));
  EXPECT_TRUE(server_.awaitConnections(0));
}

}  // namespace
}  // namespace cay::net
