// What a server does to clients that are slow, silent or too many.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <ctime>
#include <vector>

#include "net/server.h"
#include "testing/test_server.h"

namespace cay::net {
namespace {

using cay::testing::RawClient;
using cay::testing::TestServer;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Echo final : public Handler {
 public:
  Task<> handle(const RequestHead& head, Body& body, Response& response) override {
    auto text = co_await readAll(head, body, 1 << 20);
    if (text) {
      if (head.path == "/large") text->assign(16 << 20, 'x');
      (void)co_await send(response, {}, *text);
    } else {
      (void)co_await sendError(response, text.error());
    }
  }
};

constexpr std::string_view kRequest = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr Millis kShort{200};
constexpr Millis kLong{600'000};

ServerLimits only(Millis ServerLimits::* limit) {
  ServerLimits limits{
      .headTimeout = kLong, .idleTimeout = kLong, .bodyTimeout = kLong, .answerTimeout = kLong};
  limits.*limit = kShort;
  return limits;
}

TEST(ServerLimits, AHeadMustBeCompleteInTimeHoweverItTrickles) {
  Echo echo;
  TestServer server(echo, only(&ServerLimits::headTimeout));
  RawClient client = server.connect();
  client.send("GET / HTTP/1.1\r\n");
  // A byte every few milliseconds keeps a per-byte timer from ever firing.
  std::optional<std::string> answer;
  for (int i = 0; i < 3000 && !answer; ++i) {
    if (!client.send("a")) break;
    answer = client.receiveOnce(5);
  }
  ASSERT_TRUE(answer);
  EXPECT_THAT(*answer, AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("Connection: close\r\n")));
  EXPECT_TRUE(server.awaitConnections(0));
}

TEST(ServerLimits, AConnectionThatNeverSpeaksIsClosedInSilence) {
  Echo echo;
  TestServer server(echo, only(&ServerLimits::headTimeout));
  RawClient client = server.connect();
  EXPECT_EQ(client.receiveToEnd(), "");
  EXPECT_TRUE(client.endedInOrder());
}

TEST(ServerLimits, AnIdleConnectionIsClosedInSilence) {
  Echo echo;
  TestServer server(echo, only(&ServerLimits::idleTimeout));
  RawClient client = server.connect();
  EXPECT_THAT(client.ask(kRequest), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(client.receiveToEnd(), "");
  EXPECT_TRUE(client.endedInOrder());
}

TEST(ServerLimits, ABodyThatStopsArrivingGets408) {
  Echo echo;
  TestServer server(echo, only(&ServerLimits::bodyTimeout));
  for (const char* framing : {"Content-Length: 10", "Transfer-Encoding: chunked"}) {
    RawClient client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: x\r\n" + std::string(framing) + "\r\n\r\n5\r\nab");
    EXPECT_THAT(client.receiveToEnd(),
                AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("Connection: close\r\n")));
  }
}

TEST(ServerLimits, AClientThatTakesNoByteOfAnAnswerIsCutOff) {
  Echo echo;
  TestServer server(echo, only(&ServerLimits::answerTimeout));
  RawClient client = RawClient::connect(server.port(), 4096);
  client.send("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(server.awaitConnections(1));
  EXPECT_TRUE(server.awaitConnections(0));
}

TEST(ServerLimits, TooManyConnectionsGet503AndRoomAgainLater) {
  Echo echo;
  ServerLimits limits;
  limits.maxConnections = 3;
  TestServer server(echo, limits);
  std::vector<RawClient> held;
  held.reserve(3);
  for (int i = 0; i < 3; ++i) {
    held.push_back(server.connect());
    EXPECT_THAT(held.back().ask(kRequest), StartsWith("HTTP/1.1 200 "));
  }
  RawClient refused = server.connect();
  EXPECT_THAT(refused.receiveToEnd(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("{\"error\":"),
                                            HasSubstr("Connection: close\r\n")));
  // Many more at once: each is told or closed, none hangs.
  std::vector<RawClient> crowd;
  crowd.reserve(100);
  for (int i = 0; i < 100; ++i) crowd.push_back(server.connect());
  for (RawClient& client : crowd) {
    const std::string answer = client.receiveToEnd();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 503 "));
  }
  held.pop_back();
  ASSERT_TRUE(server.awaitConnections(2));
  EXPECT_THAT(server.connect().ask(kRequest), StartsWith("HTTP/1.1 200 "));
}

double processCpuSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST(ServerLimits, RunningOutOfDescriptorsNeitherSpinsNorKillsTheServer) {
  Echo echo;
  TestServer server(echo);
  RawClient before = server.connect();
  EXPECT_THAT(before.ask(kRequest), StartsWith("HTTP/1.1 200 "));

  rlimit saved{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &saved), 0);
  // The client's own socket takes the last descriptor, so the server's accept finds none.
  const Fd probe(::fcntl(before.fd(), F_DUPFD_CLOEXEC, 0));
  RawClient waiting = server.connect();
  EXPECT_THAT(waiting.ask(kRequest), StartsWith("HTTP/1.1 200 "));
  std::vector<Fd> used;
  rlimit tight = saved;
  tight.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  for (;;) {
    Fd fd(::fcntl(probe.get(), F_DUPFD_CLOEXEC, 0));
    if (!fd.valid()) break;
    used.push_back(std::move(fd));
  }
  used.pop_back();
  RawClient late = server.connect();
  late.send(kRequest);
  const double cpu = processCpuSeconds();
  EXPECT_EQ(late.receiveOnce(1000), std::nullopt);
  EXPECT_LT(processCpuSeconds() - cpu, 0.3);
  EXPECT_THAT(before.ask(kRequest), StartsWith("HTTP/1.1 200 "));

  used.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &saved), 0);
  EXPECT_THAT(late.receiveAnswer(), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace cay::net
