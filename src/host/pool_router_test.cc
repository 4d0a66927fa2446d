// Who may use which route of a pool.
#include "host/pool_router.h"

#include <boost/asio/ip/tcp.hpp>

#include "base/clock.h"
#include "host/pool_fixture.h"
#include "net/server.h"
#include "testing/raw_client.h"

namespace cay::host {
namespace {

constexpr char kHostToken[] = "the-hosts-token";
constexpr char kUnknown[] = "s-0123456789abcdef";

class PoolRouterTest : public PoolFixture {
 protected:
  void SetUp() override {
    PoolFixture::SetUp();
    if (HasFatalFailure()) return;
    services_.emplace(PoolServices{.registry = *registry_,
                                   .workers = workers_,
                                   .reserve = DiskReserve(registry_->folder().fd()),
                                   .defaults = {.mode = kMode, .limits = {}, .whyNoDisks = {}},
                                   .walls = {},
                                   .groups = groups_});
    serve(/*compat=*/false);
    own_ = create();
    sibling_ = create();
  }
  void TearDown() override {
    loop_.call([&] { server_.reset(); });
    PoolFixture::TearDown();
  }

  void serve(bool compat) {
    loop_.call([&] { server_.reset(); });
    router_ = std::make_unique<PoolRouter>(kHostToken, compat, *services_, activity_);
    const boost::asio::ip::tcp::endpoint any(boost::asio::ip::address_v4::loopback(), 0);
    server_ = loop_.call(
        [&] { return net::Server::listen(loop_.io(), {any}, *router_, {}, &workers_).value(); });
  }

  testing::RawClient send(const std::string& method, const std::string& path,
                          const std::string& token) {
    const std::string body = path.ends_with("/exec") ? R"({"cmd":"true"})" : "";
    std::string request = method + " " + path + " HTTP/1.1\r\nHost: x\r\n";
    if (!token.empty()) request += "X-Sandbox-Token: " + token + "\r\n";
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    auto client = testing::RawClient::connect(server_->port());
    EXPECT_TRUE(client.send(request));
    return client;
  }
  std::string ask(const std::string& method, const std::string& path, const std::string& token) {
    return send(method, path, token).receiveAnswer();
  }
  int status(const std::string& method, const std::string& path, const std::string& token) {
    return std::stoi(send(method, path, token).receiveUntil("\r\n").substr(9, 3));
  }
  static std::string pathOf(const sandbox::PooledPtr& pooled, const std::string& rest = "") {
    return "/v1/sandboxes/" + pooled->record.id + rest;
  }
  static std::string tokenOf(const sandbox::PooledPtr& pooled) { return pooled->record.token; }
  std::vector<std::string> strangers() {
    return {tokenOf(sibling_), "", "wrong", std::string(kHostToken) + "x", tokenOf(own_).substr(1)};
  }

  sandbox::Activity activity_{0};
  isolation::LimitGroups groups_;
  std::optional<PoolServices> services_;
  std::unique_ptr<PoolRouter> router_;
  std::unique_ptr<net::Server> server_;
  sandbox::PooledPtr own_;
  sandbox::PooledPtr sibling_;
};

struct Row {
  const char* method;
  const char* path;  // {} is the sandbox
  int host;          // status with the host's token
  int own;           // and with the sandbox's own
};

// 503: it came through, and there are no keepers in this test.
constexpr Row kRows[] = {
    {"POST", "/v1/sandboxes", 200, 403},
    {"GET", "/v1/sandboxes", 200, 403},
    {"GET", "/v1/sandboxes/", 200, 403},
    {"PUT", "/v1/sandboxes", 405, 403},
    {"OPTIONS", "/v1/sandboxes", 204, 403},
    {"GET", "/v1/sandboxes/{}", 200, 200},
    {"HEAD", "/v1/sandboxes/{}/", 200, 200},
    {"PATCH", "/v1/sandboxes/{}", 403, 405},
    {"GET", "/v1/sandboxes/{}/token", 200, 403},
    {"DELETE", "/v1/sandboxes/{}/token", 405, 403},
    {"POST", "/v1/sandboxes/{}/exec", 403, 503},
    {"GET", "/v1/sandboxes/{}/execs/x-0123456789abcdef", 403, 404},
    {"GET", "/v1/sandboxes/{}/processes", 403, 200},
    {"GET", "/v1/sandboxes/{}/files/stat?path=/", 403, 200},
    {"DELETE", "/v1/sandboxes/{}/files/stat?path=/", 403, 405},
    {"GET", "/v1/sandboxes/{}/proxy/1/", 403, 502},
    {"OPTIONS", "/v1/sandboxes/{}/exec", 403, 204},
    {"GET", "/v1/sandboxes/{}/no-such-route", 403, 404},
    {"GET", "/v1/sandboxes/{}/sandboxes", 403, 404},
    {"GET", "/v1/sandboxes/{}/tokens", 403, 404},
    // Those of a dedicated host.
    {"POST", "/v1/exec", 404, 403},
    {"GET", "/v1/files/stat?path=/", 404, 403},
    {"GET", "/v1/sandboxesx", 404, 403},
    {"GET", "/", 404, 403},
};

TEST_F(PoolRouterTest, TheTableOfTokens) {
  for (const Row& row : kRows) {
    std::string path = row.path;
    if (const size_t at = path.find("{}"); at != std::string::npos) {
      path.replace(at, 2, own_->record.id);
    }
    SCOPED_TRACE(std::string(row.method) + " " + path);
    EXPECT_EQ(status(row.method, path, kHostToken), row.host);
    EXPECT_EQ(status(row.method, path, tokenOf(own_)), row.own);
    for (const std::string& token : strangers()) {
      EXPECT_EQ(status(row.method, path, token), 403) << token;
    }
  }
}

TEST_F(PoolRouterTest, OnlyItsOwnTokenDeletes) {
  EXPECT_EQ(status("DELETE", pathOf(own_), kHostToken), 403);
  for (const std::string& token : strangers()) {
    EXPECT_EQ(status("DELETE", pathOf(own_), token), 403);
  }
  const std::string answer = ask("DELETE", pathOf(own_), tokenOf(own_));
  EXPECT_TRUE(answer.contains(R"({"id":")" + own_->record.id + R"(","deleted":true})")) << answer;
  EXPECT_EQ(status("GET", pathOf(sibling_), tokenOf(sibling_)), 200);
}

TEST_F(PoolRouterTest, WhereNothingIsOnlyTheHostLearnsThat) {
  for (const std::string& id : {std::string(kUnknown), std::string("x"), std::string("%00")}) {
    const std::string path = "/v1/sandboxes/" + id;
    EXPECT_EQ(status("GET", path, kHostToken), 404) << id;
    EXPECT_EQ(status("GET", path + "/token", kHostToken), 404) << id;
    EXPECT_EQ(status("POST", path + "/exec", kHostToken), 403) << id;
    EXPECT_EQ(status("DELETE", path, kHostToken), 403) << id;
    for (const std::string& token : strangers()) {
      EXPECT_EQ(status("GET", path, token), 403) << id;
      EXPECT_EQ(status("GET", path + "/files/read?path=x", token), 403) << id;
    }
  }
}

TEST_F(PoolRouterTest, WhatIsGoneSaysSoToItsOwner) {
  loop_.call([&] { registry_->retire(own_, sandbox::Death::kEvicted); });
  for (const char* rest : {"", "/exec", "/files/read?path=x", "/proxy/1/", "/nothing"}) {
    const std::string answer = ask("POST", pathOf(own_, rest), tokenOf(own_));
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 410")) << rest << answer;
    EXPECT_TRUE(answer.contains(R"("cause":"evicted")")) << answer;
    EXPECT_EQ(status("POST", pathOf(own_, rest), kHostToken), 403) << rest;
    EXPECT_EQ(status("POST", pathOf(own_, rest), tokenOf(sibling_)), 403) << rest;
  }
  EXPECT_EQ(status("GET", pathOf(own_), tokenOf(own_)), 410);
  EXPECT_EQ(status("GET", pathOf(own_), kHostToken), 410);
  EXPECT_EQ(status("GET", pathOf(own_, "/token"), kHostToken), 410);
  EXPECT_EQ(status("DELETE", pathOf(own_), tokenOf(own_)), 200);
  EXPECT_EQ(status("DELETE", pathOf(own_), kHostToken), 403);
}

TEST_F(PoolRouterTest, TheCompatibilitySwitchLetsTheHostIn) {
  serve(/*compat=*/true);
  EXPECT_EQ(status("GET", pathOf(own_, "/processes"), kHostToken), 200);
  EXPECT_EQ(status("GET", pathOf(own_, "/processes"), tokenOf(own_)), 200);
  EXPECT_EQ(status("GET", pathOf(own_, "/token"), tokenOf(own_)), 403);
  EXPECT_EQ(status("GET", "/v1/sandboxes", tokenOf(own_)), 403);
  for (const std::string& token : strangers()) {
    EXPECT_EQ(status("GET", pathOf(own_, "/processes"), token), 403);
  }
  // 404 would mean that a file is missing.
  EXPECT_EQ(
      status("GET", std::string("/v1/sandboxes/") + kUnknown + "/files/read?path=x", kHostToken),
      410);
  EXPECT_EQ(status("DELETE", pathOf(own_), kHostToken), 200);
}

TEST_F(PoolRouterTest, TwoTokensAreNone) {
  const std::string request =
      "GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nX-Sandbox-Token: " + std::string(kHostToken) +
      "\r\nX-Sandbox-Token: " + kHostToken + "\r\n\r\n";
  EXPECT_TRUE(
      testing::RawClient::connect(server_->port()).ask(request).starts_with("HTTP/1.1 403"));
}

TEST_F(PoolRouterTest, HealthIsForEverybody) {
  EXPECT_EQ(status("GET", "/health", ""), 200);
}

}  // namespace
}  // namespace cay::host
