#include "net/event_stream.h"

#include <gtest/gtest.h>

#include "net/event.h"
#include "testing/test_server.h"

namespace cay::net {
namespace {

using cay::testing::TestServer;

class Silent final : public Handler {
 public:
  Task<> handle(const RequestHead& head, Body& /*body*/, Response& response) override {
    EventStream events(response, Millis(50));
    EXPECT_TRUE(co_await events.begin({}));
    if (head.path == "/lines") {
      for (const char* data : {"{\"a\":1}", "{\"a\":2}"}) {
        EXPECT_TRUE(co_await events.event({}, data));
      }
      EXPECT_TRUE(co_await events.event("metric", "{}"));
    } else {
      EXPECT_TRUE(co_await events.flush());
      co_await sleepFor(Millis(60));
      EXPECT_TRUE(co_await events.flush());
      EXPECT_TRUE(co_await events.flush());
    }
    EXPECT_TRUE(co_await events.end());
  }
};

TEST(EventStream, EventsLeaveTogether) {
  Silent handler;
  const TestServer server(handler);
  auto client = server.connect();
  client.send("GET /lines HTTP/1.0\r\n\r\n");
  const std::string head = client.receiveUntil("\r\n\r\n");
  EXPECT_NE(head.find("Content-Type: text/event-stream\r\n"), std::string::npos);
  EXPECT_EQ(client.receiveToEnd(),
            "data: {\"a\":1}\n\ndata: {\"a\":2}\n\nevent: metric\ndata: {}\n\n");
}

TEST(EventStream, SilenceIsFilledOnceInAWhile) {
  Silent handler;
  const TestServer server(handler);
  auto client = server.connect();
  client.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_NE(client.receiveUntil("\r\n\r\n").find("200 OK"), std::string::npos)
      << "the head does not wait for an event";
  EXPECT_EQ(client.receiveToEnd(), ": keep-alive\n\n");
}

}  // namespace
}  // namespace cay::net
