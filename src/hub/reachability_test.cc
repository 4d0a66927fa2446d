#include "hub/reachability.h"

#include <gmock/gmock.h>

#include "hub/edge_fixture.h"

namespace cay::hub {
namespace {

using cay::testing::RawClient;
using cay::testing::RawListener;
using engine::Kind;
using engine::Stage;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReachabilityTest : public ::testing::Test {
 protected:
  JobPtr sandbox(const std::string& id, Kind kind = Kind::kDedicated) {
    JobPtr job = edge_.add(id, kind, {engine::kSandboxPort});
    edge_.loop().call([&] { edge_.engine().start(id); });
    return job;
  }
  // What a client that waits for its job does in twelve seconds, and the hub meanwhile.
  void wait(const std::string& id, const std::string& token) {
    RawClient client = edge_.plain();
    const std::string inspect = "GET /inspect/" + id +
                                " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token +
                                "\r\n\r\n";
    for (int second = 0; second < 12; ++second) {
      if (second % 2 == 0) {
        EXPECT_THAT(client.ask(inspect), StartsWith("HTTP/1.1 200 "));
      }
      edge_.loop().call([&] {
        edge_.now() += 1000;
        edge_.reachability().look();
      });
    }
    // What was started by the last look runs before this returns.
    edge_.loop().call([] {});
  }
  Stage stageOf(const JobPtr& job) {
    return edge_.loop().call([&] { return job->row.stage; });
  }
  std::string messageOf(const JobPtr& job) {
    return edge_.loop().call([&] { return job->row.message; });
  }

  TestEdge edge_;
};

TEST_F(ReachabilityTest, EndsAJobWhoseClientWaitsInVain) {
  const JobPtr job = sandbox("box");
  const JobPtr pool = sandbox("pool", Kind::kPool);
  wait("box", edge_.alice);
  EXPECT_EQ(stageOf(job), Stage::kError);
  EXPECT_THAT(messageOf(job), HasSubstr("no request for https://box--49983.cay.localhost:" +
                                        std::to_string(edge_.address().tlsPort) + " arrived"));
  EXPECT_EQ(stageOf(pool), Stage::kRunning);
}

TEST_F(ReachabilityTest, SaysWhenTheClientDoesNotTrustTheHub) {
  const JobPtr job = sandbox("box");
  OpensslClient client(RawClient::connect(edge_.address().tlsPort), "", "BOX--49983.cay.localhost");
  EXPECT_FALSE(client.connect());
  client.socket().close();
  // The hub hears of it a moment later than the client.
  wait("box", edge_.alice);
  EXPECT_EQ(stageOf(job), Stage::kError);
  EXPECT_THAT(messageOf(job), HasSubstr("SSL_CERT_FILE=/the/bundle.pem"));
}

TEST_F(ReachabilityTest, SaysWhenTheProxyWasRefused) {
  const JobPtr job = sandbox("box");
  EXPECT_THAT(edge_.plain().ask("CONNECT box--49983.cay.localhost:7343 HTTP/1.1\r\nHost: "
                                "box--49983.cay.localhost:7343\r\n\r\n"),
              StartsWith("HTTP/1.1 407 "));
  wait("box", edge_.alice);
  EXPECT_EQ(stageOf(job), Stage::kError);
  EXPECT_THAT(messageOf(job), HasSubstr("HTTPS_PROXY"));
}

TEST_F(ReachabilityTest, NobodyElseEndsAJobThisWay) {
  const JobPtr job = sandbox("box");
  // Neither another user, nor one who has every right, nor somebody without a token.
  for (const std::string& token : {edge_.bob, edge_.admin, std::string("hf_cay00")}) {
    wait("box", token);
    EXPECT_EQ(stageOf(job), Stage::kRunning);
  }
  for (int i = 0; i < 10; ++i) {
    OpensslClient client(RawClient::connect(edge_.address().tlsPort), "",
                         "box--49983.cay.localhost");
    EXPECT_FALSE(client.connect());
    (void)edge_.plain().ask("CONNECT box--49983.cay.localhost:7343 HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  wait("box", edge_.bob);
  EXPECT_EQ(stageOf(job), Stage::kRunning);
}

TEST_F(ReachabilityTest, AJobThatWasReachedOnceIsLeftAlone) {
  const JobPtr job = sandbox("box");
  RawListener inner;
  edge_.start("box", engine::kSandboxPort, inner.port());
  RawClient client = edge_.plain();
  client.send("GET /x/box--49983/health HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " +
              edge_.alice + "\r\n\r\n");
  ASSERT_TRUE(inner.accept());
  wait("box", edge_.alice);
  EXPECT_EQ(stageOf(job), Stage::kRunning);
}

TEST_F(ReachabilityTest, JobsWithoutAServerOfOursAreLeftAlone) {
  const JobPtr job = sandbox("plain", Kind::kPlain);
  wait("plain", edge_.alice);
  EXPECT_EQ(stageOf(job), Stage::kRunning);
}

// Its client has given up, or had reached it before this hub came.
TEST_F(ReachabilityTest, JobsOfLongAgoAreLeftAlone) {
  const JobPtr job = edge_.add("old", Kind::kDedicated, {engine::kSandboxPort});
  edge_.move("old", Stage::kRunning, "", wallMs() - 3'600'000);
  wait("old", edge_.alice);
  EXPECT_EQ(stageOf(job), Stage::kRunning);
}

}  // namespace
}  // namespace cay::hub
