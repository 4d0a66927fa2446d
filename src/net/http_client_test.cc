#include "net/http_client.h"

#include <gmock/gmock.h>

#include <future>

#include "testing/loop_thread.h"
#include "testing/raw_client.h"

namespace cay::net {
namespace {

using cay::testing::LoopThread;
using cay::testing::RawListener;
using ::testing::ElementsAre;

struct Answer {
  Result<ResponseHead> head = fail(Code::kInternal, "not read");
  Result<size_t> end = 0;  // what the read after the last byte gave
  std::string body;
  Fields trailers;
  Framing framing = Framing::kNone;
};

Task<Answer> exchange(uint16_t port, Framing framing, std::string body, std::string_view method) {
  Answer answer;
  auto stream = co_await dialLoopback(port);
  if (!stream) co_return answer;
  const auto client = ClientExchange::over(*std::move(stream));
  Fields fields;
  fields.add("Host", "inner");
  Fields trailers;
  trailers.add("X-Sum", "1");
  (void)co_await client->sendHead(method, "/t?q", fields, framing, body.size());
  if (framing != Framing::kNone) {
    (void)co_await client->sendBody(body.substr(0, 3));
    (void)co_await client->sendBody(body.substr(3));
  }
  (void)co_await client->endBody(trailers);
  answer.head = co_await client->readHead(method == "HEAD");
  if (!answer.head) co_return answer;
  answer.framing = client->framing();
  char buffer[7];
  for (;;) {
    answer.end = co_await client->readBody(buffer);
    if (!answer.end || *answer.end == 0) break;
    answer.body.append(buffer, *answer.end);
  }
  answer.trailers = client->trailers();
  co_return answer;
}

class ClientTest : public ::testing::Test {
 protected:
  // Plays the server: waits for `until`, answers with `bytes` and closes.
  Answer against(std::string_view bytes, std::string_view until = "\r\n\r\n",
                 Framing framing = Framing::kNone, std::string body = {},
                 std::string_view method = "GET") {
    auto answer = boost::asio::co_spawn(
        loop_.io(), exchange(listener_.port(), framing, std::move(body), method),
        boost::asio::use_future);
    auto server = listener_.accept();
    request_ = server->receiveUntil(until);
    server->send(bytes);
    server->close();
    return answer.get();
  }

  LoopThread loop_;
  RawListener listener_;
  std::string request_;
};

TEST_F(ClientTest, SendsWhatItIsGiven) {
  against("HTTP/1.1 204 x\r\n\r\n");
  EXPECT_EQ(request_, "GET /t?q HTTP/1.1\r\nHost: inner\r\n\r\n");
  against("HTTP/1.1 204 x\r\n\r\n", "hello", Framing::kLength, "hello");
  EXPECT_EQ(request_, "GET /t?q HTTP/1.1\r\nHost: inner\r\nContent-Length: 5\r\n\r\nhello");
  against("HTTP/1.1 204 x\r\n\r\n", "1\r\n\r\n", Framing::kChunked, "hello");
  EXPECT_EQ(request_,
            "GET /t?q HTTP/1.1\r\nHost: inner\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nhel\r\n2\r\nlo\r\n0\r\nX-Sum: 1\r\n\r\n");
}

TEST_F(ClientTest, ReadsEveryFraming) {
  Answer answer = against("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789excess");
  EXPECT_EQ(answer.body, "0123456789");
  EXPECT_EQ(answer.end, 0U);
  answer = against(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "a\r\n0123456789\r\n0\r\nX-T: v\r\n\r\n");
  EXPECT_EQ(answer.body, "0123456789");
  EXPECT_EQ(answer.trailers.get("x-t"), "v");
  answer = against("HTTP/1.0 200 OK\r\n\r\n0123456789");
  EXPECT_EQ(answer.body, "0123456789");
  EXPECT_EQ(answer.framing, Framing::kUntilClose);
}

TEST_F(ClientTest, SkipsInterimAnswersAndStopsAt101) {
  Answer answer = against(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_EQ(answer.head->status, 200);
  EXPECT_EQ(answer.body, "ok");
  answer = against("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nbytes");
  EXPECT_EQ(answer.head->status, 101);
}

TEST_F(ClientTest, AnAnswerToHeadHasNoBody) {
  const Answer answer = against("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789",
                                "\r\n\r\n", Framing::kNone, {}, "HEAD");
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.end, 0U);
  EXPECT_EQ(answer.head->fields.get("content-length"), "10");
}

TEST_F(ClientTest, RefusesHostileHeads) {
  for (const char* bytes : {
           "",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
           "garbage\r\n\r\n",
       }) {
    const Answer answer = against(bytes);
    ASSERT_FALSE(answer.head) << bytes;
    EXPECT_EQ(answer.head.error().code, Code::kUnreachable);
  }
  EXPECT_FALSE(against("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x')).head);
}

TEST_F(ClientTest, TellsABrokenBodyFromAComplete) {
  const std::pair<const char*, Code> cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n012", Code::kClosed},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n012\r\n", Code::kClosed},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n012\r\nzz\r\n\r\n",
       Code::kInvalid},
  };
  for (const auto& [bytes, code] : cases) {
    const Answer answer = against(bytes);
    EXPECT_EQ(answer.body, "012") << bytes;
    ASSERT_FALSE(answer.end) << bytes;
    EXPECT_EQ(answer.end.error().code, code) << bytes;
  }
}

Task<std::vector<bool>> sendBadRequests(uint16_t port) {
  std::vector<bool> accepted;
  Fields split;
  split.add("X", "a\r\nB: c");
  Fields framing;
  framing.add("content-length", "3");
  struct Try {
    std::string method, target;
    Fields fields;
  };
  const Try tries[] = {{"GET", "/a b", {}}, {"GET", "/a\r\nX: y", {}}, {"GET", "", {}},
                       {"G T", "/", {}},    {"GET", "/", split},       {"GET", "/", framing}};
  for (const Try& bad : tries) {
    auto stream = co_await dialLoopback(port);
    const auto client = ClientExchange::over(*std::move(stream));
    const auto sent =
        co_await client->sendHead(bad.method, bad.target, bad.fields, Framing::kNone, 0);
    accepted.push_back(sent.has_value());
  }
  co_return accepted;
}

TEST_F(ClientTest, NeverWritesARequestThatCouldBecomeTwo) {
  EXPECT_THAT(loop_.await(sendBadRequests(listener_.port())),
              ElementsAre(false, false, false, false, false, false));
}

}  // namespace
}  // namespace cay::net
