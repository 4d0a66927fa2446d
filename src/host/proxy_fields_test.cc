#include "host/proxy_fields.h"

#include <gmock/gmock.h>

namespace cay::host {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> lines(const net::Fields& fields) {
  std::vector<std::string> all;
  for (const net::Field& field : fields) all.push_back(field.name + ": " + field.value);
  return all;
}

net::Fields make(std::initializer_list<std::pair<const char*, const char*>> pairs) {
  net::Fields fields;
  for (const auto& [name, value] : pairs) fields.add(name, value);
  return fields;
}

net::RequestHead request(std::string target, net::Fields fields = {}) {
  net::RequestHead head;
  head.method = "GET";
  head.target = std::move(target);
  head.fields = std::move(fields);
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

TEST(ProxyFields, KeepCredentialsAndConnectionMattersFromTheInnerServer) {
  const net::RequestHead head = request("/", make({{"Host", "h.example:1"},
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
      lines(innerRequestFields(head, 80, false)),
      ElementsAre("Host: h.example:1", "X-D: 1", "Cookie: c", "X-D: 2", "Connection: close"));
}

TEST(ProxyFields, PassAnUpgradeOn) {
  net::RequestHead head = request("/", make({{"Connection", "keep-alive, Upgrade"},
                                             {"Upgrade", "websocket"},
                                             {"Sec-WebSocket-Key", "k"}}));
  EXPECT_TRUE(wantsUpgrade(head));
  EXPECT_THAT(lines(innerRequestFields(head, 80, true)),
              ElementsAre("Sec-WebSocket-Key: k", "Host: localhost:80", "Upgrade: websocket",
                          "Connection: Upgrade"));
  head.framing = net::Framing::kChunked;
  EXPECT_FALSE(wantsUpgrade(head)) << "with a body";
  head.framing = net::Framing::kNone;
  head.minorVersion = 0;
  EXPECT_FALSE(wantsUpgrade(head)) << "in HTTP/1.0";
  EXPECT_FALSE(wantsUpgrade(request("/", make({{"Upgrade", "websocket"}}))));
}

TEST(ProxyFields, TrailersCarryNoCredentialsEither) {
  EXPECT_THAT(lines(innerTrailers(make({{"X-Sum", "1"}, {"x-sandbox-token", "secret"}}))),
              ElementsAre("X-Sum: 1"));
}

TEST(ProxyFields, AnswersKeepDuplicatesAndATrueLength) {
  net::ResponseHead head{.status = 200,
                         .fields = make({{"Set-Cookie", "a"},
                                         {"Content-Length", "3"},
                                         {"Connection", "close, X-Hop"},
                                         {"X-Hop", "h"},
                                         {"Set-Cookie", "b"},
                                         {"Upgrade", "h2c"}})};
  EXPECT_THAT(lines(outerResponseFields(head, net::Framing::kLength)),
              ElementsAre("Set-Cookie: a", "Content-Length: 3", "Set-Cookie: b"));
  head.status = 204;
  EXPECT_THAT(lines(outerResponseFields(head, net::Framing::kNone)),
              ElementsAre("Set-Cookie: a", "Set-Cookie: b"));
  head.status = 426;
  EXPECT_THAT(lines(outerResponseFields(head, net::Framing::kUntilClose)),
              ElementsAre("Set-Cookie: a", "Set-Cookie: b", "Upgrade: h2c"));
}

}  // namespace
}  // namespace cay::host
