#include "hub/log_routes.h"

#include <gmock/gmock.h>

#include "base/dates.h"
#include "hub/api_fixture.h"
#include "hub/metric_routes.h"

namespace cay::hub {
namespace {

using cay::testing::RawClient;
using engine::Stage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The data of all events in a body that came in chunks, or not.
std::vector<std::string> dataOf(const std::string& text) {
  std::vector<std::string> found;
  for (size_t at = text.find("data: "); at != std::string::npos; at = text.find("data: ", at)) {
    at += 6;
    found.push_back(text.substr(at, text.find('\n', at) - at));
  }
  return found;
}

class LogRoutesTest : public ApiTest {
 protected:
  RawClient open(const std::string& target) {
    RawClient client = hub().connect();
    client.send(request("GET", target));
    const std::string head = client.receiveUntil("\r\n\r\n");
    EXPECT_THAT(head, HasSubstr("200 OK"));
    EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream"));
    EXPECT_THAT(head, HasSubstr("X-Request-Id: "));
    return client;
  }
  void say(const std::string& id, const std::string& line) {
    call([&] { engine().say(id, line); });
  }
  void finish(const std::string& id) {
    call([&] { engine().finish(id, Stage::kCompleted); });
  }
  std::vector<std::string> whole(const std::string& target) {
    return dataOf(open(target).receiveToEnd());
  }
};

TEST_F(LogRoutesTest, AnEndedJobsLogComesWholeAndAgain) {
  const std::string id = start();
  call([&] { engine().start(id); });
  for (const char* line : {"===== Job started", "one", "two", "three"}) say(id, line);
  finish(id);
  const auto first = whole(path(id, "logs"));
  ASSERT_EQ(first.size(), 4U);
  EXPECT_EQ(first, whole(path(id, "logs"))) << "to the letter";
  int64_t before = 0;
  for (const std::string& text : first) {
    const json::Value event = *json::parse(text);
    const auto time = parseIsoDate(event.at("timestamp").as_string());
    ASSERT_TRUE(time);
    EXPECT_GT(*time, before);
    before = *time;
  }
  EXPECT_EQ(json::parse(first[1])->at("data"), "one");
  EXPECT_THAT(whole(path(id, "logs?tail=2")), ElementsAre(first[2], first[3]));
  EXPECT_THAT(whole(path(id, "logs?tail=0")), IsEmpty());
  EXPECT_EQ(whole(path(id, "logs?tail=99")), first);
  EXPECT_EQ(get(path(id, "logs?tail=-1")).status, 400);
  EXPECT_EQ(get(path("none", "logs")).status, 404);
}

TEST_F(LogRoutesTest, AStreamIsOpenFromTheQueueToTheLastLine) {
  const std::string id = start();
  RawClient client = open(path(id, "logs"));
  EXPECT_EQ(client.receiveOnce(100), std::nullopt) << "it waits";
  call([&] { engine().start(id); });
  EXPECT_EQ(client.receiveOnce(100), std::nullopt);
  say(id, "first");
  EXPECT_THAT(client.receiveUntil("\n\n"), HasSubstr(R"({"data":"first","timestamp":")"));
  call([&] {
    engine().say(id, "last");
    engine().finish(id, Stage::kError, "failed");
  });
  EXPECT_THAT(client.receiveToEnd(), HasSubstr(R"({"data":"last")"));
  EXPECT_TRUE(client.endedInOrder());
}

TEST_F(LogRoutesTest, LastWordsOfACanceledJobAreNotLost) {
  const std::string id = start();
  call([&] {
    engine().start(id);
    engine().setLingering(id, true);
  });
  RawClient client = open(path(id, "logs"));
  EXPECT_EQ(post(path(id, "cancel")).status, 200);
  EXPECT_EQ(client.receiveOnce(1'200), std::nullopt) << "over for clients, but not done";
  say(id, "bye");
  call([&] { engine().setLingering(id, false); });
  EXPECT_THAT(client.receiveToEnd(), HasSubstr(R"({"data":"bye")"));
  EXPECT_TRUE(client.endedInOrder());
}

TEST_F(LogRoutesTest, CanceledInTheQueueIsAnEnd) {
  const std::string id = start();
  RawClient client = open(path(id, "logs"));
  EXPECT_EQ(post(path(id, "cancel")).status, 200);
  EXPECT_THAT(dataOf(client.receiveToEnd()), IsEmpty());
  EXPECT_TRUE(client.endedInOrder());
}

TEST_F(LogRoutesTest, NoLineCanBreakTheStream) {
  const std::string id = start();
  const std::string hostile =
      "a\xE2\x80\xA8"
      "b\xE2\x80\xA9"
      "c\xC2\x85\x0B\x0C\x1C\r\ndata: {\"data\":\"no\"}\n\n\x01\"\\";
  say(id, hostile);
  say(id, "broken \xFF\xC3 bytes");
  finish(id);
  const std::string text = open(path(id, "logs")).receiveToEnd();
  for (const char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80U);
  EXPECT_EQ(text.find('\x0B'), std::string::npos);
  size_t events = 0;
  for (size_t at = text.find("\ndata: {"); at != std::string::npos; ++events) {
    at = text.find("\ndata: {", at + 1);
  }
  EXPECT_EQ(events, 2U) << text;
  EXPECT_THAT(text, HasSubstr("\\u2028"));
  EXPECT_THAT(text, HasSubstr("broken \\ufffd\\ufffd bytes"));
}

TEST_F(LogRoutesTest, AJobThatTheEngineHasForgottenHasNoLog) {
  const std::string id = start();
  finish(id);
  call([&] { engine().lose(id); });
  EXPECT_THAT(whole(path(id, "logs")), IsEmpty());
}

TEST_F(LogRoutesTest, AClientThatLeavesIsNotWaitedFor) {
  const std::string id = start();
  {
    const RawClient gone = open(path(id, "logs"));
  }
  // The fixture's end fails if a connection stays.
}

TEST_F(LogRoutesTest, ManyLinesComeInOrder) {
  const std::string id = start();
  constexpr int kLines = 20'000;
  call([&] {
    for (int i = 0; i < kLines; ++i) engine().say(id, "line " + std::to_string(i));
  });
  finish(id);
  auto client = hub().connect();
  // Without chunks, so that no event is cut by one's frame.
  client.send("GET " + path(id, "logs") + " HTTP/1.0\r\nAuthorization: Bearer " +
              tokenOf_["tester"] + "\r\n\r\n");
  const auto lines = dataOf(client.receiveToEnd());
  ASSERT_EQ(lines.size(), kLines);
  EXPECT_THAT(lines[kLines - 1], HasSubstr("\"line 19999\""));
}

TEST_F(LogRoutesTest, MetricsComeAtOnceAndEndWithTheJob) {
  const std::string id = start();
  call([&] {
    engine().setUsage(id, {.cpuMs = 5,
                           .memoryBytes = 1000,
                           .memoryLimit = 4000,
                           .milliCpus = 2000,
                           .receivedBytes = 0,
                           .sentBytes = 0});
  });
  RawClient client = open(path(id, "metrics"));
  EXPECT_EQ(client.receiveOnce(100), std::nullopt) << "there is nothing to tell of one that waits";
  call([&] { engine().start(id); });
  const std::string first = client.receiveUntil("}\n\n");
  EXPECT_THAT(first, HasSubstr("event: metric\n"));
  const json::Value metrics = *json::parse(dataOf(first).at(0));
  EXPECT_EQ(metrics.at("memory_used_bytes"), 1000);
  EXPECT_EQ(metrics.at("memory_total_bytes"), 4000);
  EXPECT_EQ(metrics.at("cpu_millicores"), 2000);
  EXPECT_TRUE(metrics.at("gpus").is_null());
  EXPECT_EQ(metrics.at("replica"), json::Value(id.substr(0, 5)));
  EXPECT_FALSE(client.receiveUntil("}\n\n").empty()) << "and the next one a second later";
  finish(id);
  (void)client.receiveToEnd();
  EXPECT_TRUE(client.endedInOrder());
  EXPECT_EQ(get(path(id, "metrics")).status, 500) << "what all clients take for the end";
}

TEST(Metrics, AreRatesOfWhatMayBeUsed) {
  UsageSample before{.atMs = 10'000, .usage = {}};
  before.usage.cpuMs = 500;
  before.usage.receivedBytes = 100;
  UsageSample after{.atMs = 12'000, .usage = {}};
  after.usage.cpuMs = 1500;
  after.usage.milliCpus = 2000;
  after.usage.receivedBytes = 1100;
  after.usage.sentBytes = 500;
  const json::Object metrics = metricsBetween(before, after);
  EXPECT_EQ(metrics.at("cpu_usage_pct"), 25.0) << "one second of two, on one processor of two";
  EXPECT_EQ(metrics.at("rx_bps"), 4000U);
  EXPECT_EQ(metrics.at("tx_bps"), 2000U);
  EXPECT_EQ(metrics.at("memory_total_bytes"), 1U) << "clients divide by it";
  // Counters that began anew, and a clock that was set back.
  const json::Object odd = metricsBetween(after, before);
  EXPECT_GE(odd.at("cpu_usage_pct").as_double(), 0);
}

}  // namespace
}  // namespace cay::hub
