#include "hub/relay.h"

#include <gmock/gmock.h>

#include <future>
#include <memory>
#include <optional>

#include "base/text.h"
#include "hub/tls_fixture.h"
#include "net/server.h"
#include "sys/socket.h"
#include "testing/loop_thread.h"
#include "testing/raw_client.h"
#include "testing/temp_dir.h"
#include "testing/test_server.h"

namespace cay::hub {
namespace {

using cay::testing::RawClient;
using cay::testing::RawListener;
using cay::testing::TempDir;
using cay::testing::TestServer;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RelayTest : public ::testing::Test {
 protected:
  RelayTest() {
    Identities all{.principals = {{.id = "p", .name = "alice", .type = "user"}}, .tokens = {}};
    MadeToken made =
        makeToken({.name = "n", .role = Role::kUser, .principal = "p", .namespaces = {}}, wallMs());
    token_ = made.secret;
    all.tokens.push_back(made.row);
    tokens_.replace(all);
  }
  void open(const std::string& url, const std::string& token = {}) {
    server_.reset();
    relay_ = orThrow(Relay::open({.url = url, .token = token}, tokens_, outbound_));
    server_.emplace(*relay_);
  }
  [[nodiscard]] std::string here() const {
    return "http://127.0.0.1:" + std::to_string(upstream_.port());
  }
  static std::string get(const std::string& target, const std::string& fields = {}) {
    return "GET " + target + " HTTP/1.1\r\nHost: hub.example:7340\r\n" + fields + "\r\n";
  }
  // What the upstream gets to see.
  std::string seen(const std::string& request) {
    RawClient client = server_->connect();
    client.send(request);
    auto upstream = upstream_.accept();
    return upstream ? upstream->receiveUntil("\r\n\r\n") : "nothing";
  }

  Tokens tokens_;
  std::string token_;
  RawListener upstream_;
  Outbound outbound_{std::nullopt};
  std::unique_ptr<Relay> relay_;
  std::optional<TestServer> server_;
};

TEST_F(RelayTest, StreamsARequestUpAndItsAnswerBack) {
  open(here());
  RawClient client = server_->connect();
  client.send(
      "POST /api/models/a%2Fb?x=1 HTTP/1.1\r\nHost: hub\r\nTransfer-Encoding: chunked\r\n"
      "User-Agent: u\r\n\r\n3\r\nabc\r\n");
  auto upstream = upstream_.accept();
  ASSERT_TRUE(upstream);
  EXPECT_EQ(upstream->receiveUntil("3\r\nabc\r\n"),
            "POST /api/models/a%2Fb?x=1 HTTP/1.1\r\nUser-Agent: u\r\nHost: 127.0.0.1:" +
                std::to_string(upstream_.port()) +
                "\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.send("0\r\n\r\n");
  // Redirects are for the client to follow.
  upstream->send(
      "HTTP/1.1 302 Found\r\nLocation: https://cdn.example/x\r\nETag: e\r\n"
      "Content-Length: 4\r\n\r\nmove");
  EXPECT_THAT(client.receiveAnswer(),
              AllOf(StartsWith("HTTP/1.1 302 "), HasSubstr("Location: https://cdn.example/x\r\n"),
                    HasSubstr("ETag: e\r\n"), EndsWith("move")));
}

TEST_F(RelayTest, ATokenOfOursNeverLeaves) {
  open(here());
  EXPECT_THAT(seen(get("/api/models", "Authorization: Bearer " + token_ + "\r\nX-A: 1\r\n")),
              AllOf(HasSubstr("X-A: 1"), Not(HasSubstr("hf_cay")), Not(HasSubstr("uthorization"))));
  EXPECT_THAT(seen(get("/", "Authorization: Bearer " + token_ + "\r\nCookie: t=" + token_ +
                                "\r\nX-Sandbox-Token: s\r\n")),
              AllOf(Not(HasSubstr("hf_cay")), Not(HasSubstr("Sandbox"))));
  // One that is not good is told so here, whatever it comes as.
  for (const std::string& value :
       {std::string("Bearer hf_cay00"), "Basic " + base64Encode("u:" + token_)}) {
    EXPECT_THAT(server_->connect().ask(get("/", "Authorization: " + value + "\r\n")),
                StartsWith("HTTP/1.1 401 "));
  }
  EXPECT_FALSE(upstream_.accept(100));
}

TEST_F(RelayTest, TokensOfOthersPass) {
  open(here(), "hf_owner");
  EXPECT_THAT(seen(get("/", "Authorization: Bearer hf_mine\r\n")),
              AllOf(HasSubstr("Authorization: Bearer hf_mine\r\n"), Not(HasSubstr("hf_owner"))));
}

TEST_F(RelayTest, TheUpstreamsTokenIsForOurUsers) {
  open(here(), "hf_owner");
  EXPECT_THAT(seen(get("/", "Authorization: Bearer " + token_ + "\r\n")),
              AllOf(HasSubstr("Authorization: Bearer hf_owner\r\n"), Not(HasSubstr("hf_cay"))));
  EXPECT_THAT(seen(get("/")), Not(HasSubstr("hf_owner")));
}

TEST_F(RelayTest, ClientsOfOtherMachinesNeedAToken) {
  open(here());
  auto pair = sys::streamPair();
  ASSERT_TRUE(pair);
  server_->loop().call([&] {
    net::Socket socket(server_->loop().io().get_executor());
    socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), pair->first.release());
    server_->adopt(net::Stream{std::move(socket), {}},
                   {.address = "192.0.2.7", .loopback = false, .tls = false});
  });
  RawClient client(std::move(pair->second));
  EXPECT_THAT(client.ask(get("/")), StartsWith("HTTP/1.1 401 "));
  client.send(get("/", "Authorization: Bearer " + token_ + "\r\n"));
  EXPECT_TRUE(upstream_.accept());
}

TEST_F(RelayTest, ListsGoOnHere) {
  open(here() + "/hub/");
  RawClient client = server_->connect();
  client.send(get("/api/models?a=1"));
  auto upstream = upstream_.accept();
  ASSERT_TRUE(upstream);
  EXPECT_THAT(upstream->receiveUntil("\r\n\r\n"),
              StartsWith("GET /hub/api/models?a=1 HTTP/1.1\r\n"));
  upstream->send(
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nLink: <" + here() +
      "/hub/api/models?cursor=2>; rel=\"next\", <https://other.example/x>; rel=\"y\"\r\n\r\n");
  EXPECT_THAT(client.receiveAnswer(),
              HasSubstr("Link: <http://hub.example:7340/api/models?cursor=2>; rel=\"next\", "
                        "<https://other.example/x>; rel=\"y\"\r\n"));
}

TEST_F(RelayTest, SaysThatTheUpstreamIsNotThere) {
  uint16_t port = 0;
  {
    port = RawListener().port();
  }
  open("http://127.0.0.1:" + std::to_string(port));
  EXPECT_THAT(server_->connect().ask(get("/api/models/x?token=private")),
              AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("{\"error\":\"GET /api/models/x is not"),
                    HasSubstr("http://127.0.0.1:" + std::to_string(port)),
                    HasSubstr("Connection refused"), Not(HasSubstr("private"))));
  open("https://no-such-host.invalid");
  EXPECT_THAT(server_->connect().ask(get("/")),
              AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("does not resolve")));
}

TEST_F(RelayTest, AnUpstreamThatNobodyTrustsIsNotThere) {
  TestCa ca;
  // Ends TLS with a certificate of a CA that this machine does not know.
  open("https://localhost:" + std::to_string(upstream_.port()));
  RawClient client = server_->connect();
  client.send(get("/", "Authorization: Bearer hf_mine\r\n"));
  auto raw = upstream_.accept();
  ASSERT_TRUE(raw);
  cay::testing::LoopThread loop;
  auto accepted = std::async(std::launch::async, [&] {
    net::Socket socket(loop.io().get_executor());
    socket.assign(boost::asio::generic::stream_protocol(AF_INET, 0),
                  duplicate(raw->fd()).release());
    socket.native_non_blocking(true);
    return loop.await(acceptTls(ca.context, net::Stream{std::move(socket), {}})).has_value();
  });
  EXPECT_THAT(client.receiveAnswer(), AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("certificate")));
  EXPECT_FALSE(accepted.get());
}

TEST(UpstreamSettings, AreChecked) {
  Tokens tokens;
  Outbound outbound(std::nullopt);
  for (const char* url : {"", "huggingface.co", "ftp://h", "https://", "https://u@h", "https://h:0",
                          "https://h:x", "https://h/?q", "https://h h"}) {
    EXPECT_FALSE(Relay::open({.url = url, .token = {}}, tokens, outbound)) << url;
  }
  for (const char* url : {"https://huggingface.co", "https://h:8443/", "http://[::1]:80/a/b"}) {
    EXPECT_TRUE(Relay::open({.url = url, .token = {}}, tokens, outbound)) << url;
  }
  TempDir dir;
  EXPECT_EQ(readUpstreamToken(dir.write("good", "hf_abc\n")).value(), "hf_abc");
  EXPECT_FALSE(readUpstreamToken(dir.write("empty", "\n")));
  EXPECT_FALSE(readUpstreamToken(dir.write("two", "a b\n")));
  EXPECT_FALSE(readUpstreamToken(dir.write("ours", "hf_cay123\n")));
  EXPECT_FALSE(readUpstreamToken((dir.path() / "missing").string()));
}

}  // namespace
}  // namespace cay::hub
