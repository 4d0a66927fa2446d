#include "net/passage_fields.h"

#include <gmock/gmock.h>

namespace cay::net {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> lines(const Fields& fields) {
  std::vector<std::string> all;
  for (const Field& field : fields) all.push_back(field.name + ": " + field.value);
  return all;
}

Fields make(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  Fields fields;
  for (const auto& [name, value] : pairs) fields.add(name, value);
  return fields;
}

RequestHead request(std::string target, Fields fields = {}) {
  RequestHead head;
  head.method = "GET";
  head.target = std::move(target);
  head.fields = std::move(fields);
  return head;
}

Onward inner() {
  return {.server = "port 80",
          .target = "/",
          .host = "localhost:80",
          .withheld = {"authorization", "proxy-authorization", "x-sandbox-token"},
          .added = {}};
}

TEST(PassageFields, KeepCredentialsAndConnectionMattersFromTheInnerServer) {
  const RequestHead head = request("/", make({{"Host", "h.example:1"},
                                              {"authorization", "Bearer secret"},
                                              {"X-Sandbox-Token", "secret"},
                                              {"X-SANDBOX-TOKEN", "secret"},
                                              {"Proxy-Authorization", "secret"},
                                              {"X-D", "1"},
                                              {"Connection", "keep-alive, X-Private"},
                                              {"Connection", "Host"},
                                              {"X-Private", "p"},
                                              {"Keep-Alive", "5"},
                                              {"TE", "trailers"},
                                              {"Expect", "100-continue"},
                                              {"Transfer-Encoding", "chunked"},
                                              {"Upgrade", "websocket"},
                                              {"Cookie", "c"},
                                              {"X-D", "2"}}));
  EXPECT_THAT(
      lines(innerRequestFields(head, inner(), false)),
      ElementsAre("Host: h.example:1", "X-D: 1", "Cookie: c", "X-D: 2", "Connection: close"));
}

TEST(PassageFields, PassAnUpgradeOn) {
  RequestHead head = request("/", make({{"Connection", "keep-alive, Upgrade"},
                                        {"Upgrade", "websocket"},
                                        {"Sec-WebSocket-Key", "k"}}));
  EXPECT_TRUE(wantsUpgrade(head));
  EXPECT_THAT(lines(innerRequestFields(head, inner(), true)),
              ElementsAre("Sec-WebSocket-Key: k", "Host: localhost:80", "Upgrade: websocket",
                          "Connection: Upgrade"));
  head.framing = Framing::kChunked;
  EXPECT_FALSE(wantsUpgrade(head)) << "with a body";
  head.framing = Framing::kNone;
  head.minorVersion = 0;
  EXPECT_FALSE(wantsUpgrade(head)) << "in HTTP/1.0";
  EXPECT_FALSE(wantsUpgrade(request("/", make({{"Upgrade", "websocket"}}))));
}

// The host of another machine, and words of our own in place of the client's.
TEST(PassageFields, CanBeReplaced) {
  const RequestHead head =
      request("/", make({{"Host", "h.example"}, {"X-Forwarded-Proto", "lie"}, {"X-D", "1"}}));
  Onward onward = inner();
  onward.withheld = {"Host", "x-forwarded-proto"};
  onward.added = make({{"X-Forwarded-Proto", "https"}});
  EXPECT_THAT(
      lines(innerRequestFields(head, onward, false)),
      ElementsAre("X-D: 1", "Host: localhost:80", "X-Forwarded-Proto: https", "Connection: close"));
}

TEST(PassageFields, TrailersCarryNoCredentialsEither) {
  EXPECT_THAT(lines(innerTrailers(make({{"X-Sum", "1"}, {"x-sandbox-token", "secret"}}), inner())),
              ElementsAre("X-Sum: 1"));
}

TEST(PassageFields, AnswersKeepDuplicatesAndATrueLength) {
  ResponseHead head{.status = 200,
                    .fields = make({{"Set-Cookie", "a"},
                                    {"Content-Length", "3"},
                                    {"Connection", "close, X-Hop"},
                                    {"X-Hop", "h"},
                                    {"Set-Cookie", "b"},
                                    {"Upgrade", "h2c"}})};
  EXPECT_THAT(lines(outerResponseFields(head, Framing::kLength)),
              ElementsAre("Set-Cookie: a", "Content-Length: 3", "Set-Cookie: b"));
  head.status = 204;
  EXPECT_THAT(lines(outerResponseFields(head, Framing::kNone)),
              ElementsAre("Set-Cookie: a", "Set-Cookie: b"));
  head.status = 426;
  EXPECT_THAT(lines(outerResponseFields(head, Framing::kUntilClose)),
              ElementsAre("Set-Cookie: a", "Set-Cookie: b", "Upgrade: h2c"));
}

}  // namespace
}  // namespace cay::net
