#include "hub/edge.h"

#include <gmock/gmock.h>

#include <thread>

#include "hub/edge_fixture.h"

namespace cay::hub {
namespace {

using cay::testing::eventually;
using cay::testing::RawClient;
using cay::testing::RawListener;
using engine::Kind;
using engine::Stage;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint16_t kSandboxPort = engine::kSandboxPort;

class EdgeTest : public ::testing::Test {
 protected:
  // By path, on the API's port.
  std::string ask(std::string_view target, const std::string& fields = {}) {
    return edge_.plain().ask(request(target, fields));
  }
  static std::string request(std::string_view target, const std::string& fields = {},
                             const std::string& host = "127.0.0.1") {
    return "GET " + std::string(target) + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields + "\r\n";
  }
  static std::string bearer(const std::string& token) {
    return "Authorization: Bearer " + token + "\r\n";
  }
  // Sends a request by path and gives the job's server's end of it.
  RawClient passed(RawClient& client, const std::string& bytes) {
    client.send(bytes);
    auto server = inner_.accept();
    if (!server) throw std::runtime_error("the job was not reached");
    return *std::move(server);
  }
  JobPtr running(const std::string& id, Kind kind, uint16_t port, std::vector<uint16_t> open = {}) {
    JobPtr job = edge_.add(id, kind, {port}, std::move(open));
    edge_.start(id, port, inner_.port());
    return job;
  }

  TestEdge edge_;
  RawListener inner_;
};

TEST_F(EdgeTest, PassesARequestOnWithoutItsToken) {
  running("job1", Kind::kPlain, 8000);
  RawClient client = edge_.plain();
  RawClient inner = passed(
      client, request("/x/job1--8000/a%2Fb?q=%20&r",
                      bearer(edge_.alice) + "Proxy-Authorization: Basic eA==\r\n"
                                            "X-Sandbox-Token: secret\r\n"
                                            "X-Forwarded-Proto: lie\r\nForwarded: for=lie\r\n"
                                            "X-Forwarded-For: lie\r\nX-Mine: 1\r\n"));
  EXPECT_EQ(inner.receiveUntil("\r\n\r\n"),
            "GET /a%2Fb?q=%20&r HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Mine: 1\r\n"
            "X-Forwarded-Proto: http\r\nX-Forwarded-Host: 127.0.0.1\r\n"
            "X-Forwarded-Prefix: /x/job1--8000\r\nConnection: close\r\n\r\n");
  inner.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("ok"));
  // The connection to the hub goes on; that to the job is over.
  EXPECT_EQ(inner.receiveToEnd(), "");
  EXPECT_THAT(client.ask(request("/healthz")), EndsWith("api /healthz"));
}

TEST_F(EdgeTest, IsReachedByHostThroughTls) {
  running("job1", Kind::kPlain, 8000);
  const std::string host = "JOB1--8000.cay.localhost:" + std::to_string(edge_.address().tlsPort);
  OpensslClient client = edge_.secure("job1--8000.cay.localhost");
  ASSERT_TRUE(client.send(request("/p", bearer(edge_.alice), host)));
  auto inner = inner_.accept();
  ASSERT_TRUE(inner);
  EXPECT_EQ(inner->receiveUntil("\r\n\r\n"),
            "GET /p HTTP/1.1\r\nHost: " + host +
                "\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: " + host +
                "\r\nConnection: close\r\n\r\n");
  inner->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_THAT(client.receiveSome(), EndsWith("ok"));
  // The next request of the connection is judged anew.
  for (const char* other :
       {"cay.localhost", "example.com", "job1--8000.cay.localhost.evil", "job1"}) {
    ASSERT_TRUE(client.send(request("/", bearer(edge_.alice), other)));
    EXPECT_THAT(client.receiveSome(), StartsWith("HTTP/1.1 421 ")) << other;
  }
  // Neither the API nor the paths of the plain port are served here.
  ASSERT_TRUE(client.send(request("/x/job1--8000/", bearer(edge_.alice), "cay.localhost")));
  EXPECT_THAT(client.receiveSome(), StartsWith("HTTP/1.1 421 "));
}

// After an upgrade the bytes are the two sides' own business, and so are their ends.
TEST_F(EdgeTest, PassesHalfClosesThroughTls) {
  running("job1", Kind::kPlain, 8000);
  OpensslClient client = edge_.secure("job1--8000.cay.localhost");
  ASSERT_TRUE(
      client.send(request("/", bearer(edge_.alice) + "Connection: Upgrade\r\nUpgrade: x\r\n",
                          "job1--8000.cay.localhost")));
  auto inner = inner_.accept();
  ASSERT_TRUE(inner);
  inner->receiveUntil("\r\n\r\n");
  inner->send("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
  EXPECT_THAT(client.receiveSome(), StartsWith("HTTP/1.1 101 "));
  ASSERT_TRUE(client.send("question"));
  client.endSending();
  EXPECT_EQ(inner->receiveToEnd(), "question");
  EXPECT_TRUE(inner->endedInOrder());
  inner->send("answer");
  inner->close();
  EXPECT_EQ(client.receiveToEnd(), "answer");
  EXPECT_TRUE(client.endedInOrder());
}

TEST_F(EdgeTest, TellsNothingWithoutAToken) {
  running("job1", Kind::kPlain, 8000);
  edge_.add("ended", Kind::kPlain, {8000});
  edge_.loop().call([&] { edge_.engine().finish("ended", Stage::kError, "why"); });
  std::string first;
  for (const char* path :
       {"/x/job1--8000/", "/x/job1--9/", "/x/ended--8000/", "/x/nobody--8000/"}) {
    const std::string answer = ask(path);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 ")) << path;
    if (first.empty()) first = answer;
    EXPECT_EQ(answer, first) << path;
    EXPECT_EQ(ask(path, bearer("hf_cay00")), ask("/x/nobody--1/", bearer("hf_cay00")));
    EXPECT_THAT(ask(path, bearer(edge_.proxyToken)), StartsWith("HTTP/1.1 403 ")) << path;
  }
  EXPECT_FALSE(inner_.accept(100));
}

TEST_F(EdgeTest, TellsWhyItDoesNotPassARequestOn) {
  running("job1", Kind::kPlain, 8000);
  edge_.add("ended", Kind::kPlain, {8000});
  edge_.add("waiting", Kind::kPlain, {8000});
  edge_.move("ended", Stage::kError, "Job failed with exit code: 3");
  edge_.move("waiting", Stage::kScheduling, "position 3 of 12");
  const std::string token = bearer(edge_.alice);
  EXPECT_THAT(ask("/x/nobody--8000/", token), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask("/x/job1--9/", token),
              AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("does not expose port 9")));
  EXPECT_THAT(
      ask("/x/ended--8000/", token),
      AllOf(StartsWith("HTTP/1.1 410 "),
            HasSubstr("{\"error\":\"job ended is over: ERROR: Job failed with exit code: 3\"}")));
  EXPECT_THAT(ask("/x/waiting--8000/", token),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("position 3 of 12")));
  for (const char* path :
       {"/x/", "/x/job1--8000", "/x/JOB1--8000/", "/x/job1--08000/", "/x/job1/"}) {
    EXPECT_THAT(ask(path, token), StartsWith("HTTP/1.1 404 ")) << path;
  }
  EXPECT_FALSE(inner_.accept(100));
}

TEST_F(EdgeTest, ForOthersAJobIsNotThere) {
  running("job1", Kind::kPlain, 8000);
  edge_.add("job2", Kind::kPlain, {8000});
  edge_.add("job3", Kind::kPlain, {8000});
  edge_.move("job2", Stage::kError, "Job failed with exit code: 3");
  edge_.move("job3", Stage::kScheduling, "position 3 of 12");
  const std::string never = ask("/x/job0--8000/", bearer(edge_.bob));
  EXPECT_THAT(never, StartsWith("HTTP/1.1 404 "));
  for (const std::string id : {"job1", "job2", "job3"}) {
    for (const char* port : {"8000", "9"}) {
      std::string expected = never;
      for (size_t at = 0; (at = expected.find("job0")) != std::string::npos;) {
        expected.replace(at, id.size(), id);
      }
      EXPECT_EQ(ask("/x/" + id + "--" + port + "/", bearer(edge_.bob)), expected) << id;
    }
  }
  EXPECT_FALSE(inner_.accept(100));
}

TEST_F(EdgeTest, AnAdministratorReachesEveryJob) {
  running("job1", Kind::kPlain, 8000);
  RawClient client = edge_.plain();
  passed(client, request("/x/job1--8000/", bearer(edge_.admin)))
      .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("ok"));
}

TEST_F(EdgeTest, PublicPortsNeedNoTokenAndKeepOnlyForeignOnes) {
  running("job1", Kind::kPlain, 8000, {8000});
  const auto seen = [&](const std::string& fields) {
    RawClient client = edge_.plain();
    RawClient inner = passed(client, request("/x/job1--8000/", fields));
    return inner.receiveUntil("\r\n\r\n");
  };
  EXPECT_THAT(seen(""), Not(HasSubstr("Authorization")));
  EXPECT_THAT(seen("Authorization: Bearer app-token\r\n"),
              HasSubstr("Authorization: Bearer app-token\r\n"));
  for (const std::string& value :
       {"Bearer " + edge_.alice, "Bearer " + edge_.bob, std::string("Bearer hf_cayexpired"),
        "Basic " + base64Encode("x:" + edge_.alice), "token=" + edge_.proxyToken}) {
    const std::string fields = seen("Authorization: " + value + "\r\nX-Sandbox-Token: s\r\n");
    EXPECT_THAT(fields, AllOf(Not(HasSubstr("uthorization")), Not(HasSubstr("Sandbox")))) << value;
  }
  // One that is the hub's takes the others with it.
  EXPECT_THAT(seen("Authorization: Bearer app\r\nAuthorization: Bearer " + edge_.alice + "\r\n"),
              Not(HasSubstr("uthorization")));
  EXPECT_THAT(ask("/x/job1--8001/"), StartsWith("HTTP/1.1 401 "));
}

TEST_F(EdgeTest, TheSandboxTokenIsForTheSandboxServerAlone) {
  running("box", Kind::kDedicated, kSandboxPort);
  RawClient client = edge_.plain();
  RawClient inner = passed(
      client, request("/x/box--49983/v1/exec", bearer(edge_.alice) + "X-Sandbox-Token: s\r\n"));
  const std::string seen = inner.receiveUntil("\r\n\r\n");
  EXPECT_THAT(seen, AllOf(HasSubstr("X-Sandbox-Token: s\r\n"), Not(HasSubstr("uthorization"))));

  // The same port of another kind of job is any server of its own.
  running("plain", Kind::kPlain, kSandboxPort);
  RawClient other = edge_.plain();
  RawClient own = passed(
      other, request("/x/plain--49983/v1/exec", bearer(edge_.alice) + "X-Sandbox-Token: s\r\n"));
  EXPECT_THAT(own.receiveUntil("\r\n\r\n"), Not(HasSubstr("Sandbox-Token")));
}

TEST_F(EdgeTest, SaysThatNothingListens) {
  edge_.add("job1", Kind::kPlain, {8000});
  edge_.loop().call([&] { edge_.engine().start("job1"); });
  EXPECT_THAT(ask("/x/job1--8000/", bearer(edge_.alice)),
              AllOf(StartsWith("HTTP/1.1 502 "), HasSubstr("nothing listens on port 8000")));
}

TEST_F(EdgeTest, AJobThatEndsInTheMidstOfARequestIsOver) {
  running("job1", Kind::kPlain, 8000);
  RawClient client = edge_.plain();
  RawClient inner = passed(client, request("/x/job1--8000/", bearer(edge_.alice)));
  edge_.loop().call([&] { edge_.engine().finish("job1", Stage::kCanceled, "canceled by alice"); });
  inner.close();
  EXPECT_THAT(client.receiveAnswer(),
              AllOf(StartsWith("HTTP/1.1 410 "), HasSubstr("canceled by alice")));
}

// ---- the health of a sandbox's server

class HealthTest : public EdgeTest {
 protected:
  // Asks, and is certain that the question waits at the edge.
  RawClient waiting(const std::string& id) {
    RawClient client = edge_.plain();
    client.send(request("/x/" + id + "--49983/health", bearer(edge_.alice)));
    const JobPtr job = edge_.jobs().find(id);
    EXPECT_TRUE(eventually([&] { return edge_.loop().call([&] { return job->row.healthSeen; }); }));
    return client;
  }
};

TEST_F(HealthTest, IsAnsweredOnceTheServerServes) {
  const JobPtr job = edge_.add("box", Kind::kDedicated, {kSandboxPort});
  RawClient client = waiting("box");
  EXPECT_FALSE(client.receiveOnce(100));
  edge_.move("box", Stage::kRunning, "starting cay-host");
  EXPECT_FALSE(client.receiveOnce(100)) << "it runs, but does not serve yet";
  edge_.start("box", kSandboxPort, inner_.port());
  auto inner = inner_.accept();
  ASSERT_TRUE(inner);
  EXPECT_EQ(edge_.loop().call([&] { return job->row.stage; }), Stage::kRunning)
      << "before the answer";
  EXPECT_THAT(inner->receiveUntil("\r\n\r\n"), StartsWith("GET /health HTTP/1.1\r\n"));
  inner->send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  EXPECT_THAT(client.receiveAnswer(), EndsWith("ok"));
}

TEST_F(HealthTest, ThatWaitsInVainIsAnsweredInTime) {
  edge_.add("box", Kind::kDedicated, {kSandboxPort});
  edge_.move("box", Stage::kScheduling, "waiting: 3 of 12");
  const int64_t begun = monotonicMs();
  RawClient client = waiting("box");
  EXPECT_THAT(client.receiveAnswer(),
              AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("waiting: 3 of 12")));
  EXPECT_GE(monotonicMs() - begun, 4400);
}

TEST_F(HealthTest, OfAJobThatEndsIsGone) {
  edge_.add("box", Kind::kPool, {kSandboxPort});
  RawClient client = waiting("box");
  edge_.loop().call([&] { edge_.engine().finish("box", Stage::kError, "no such image"); });
  EXPECT_THAT(client.receiveAnswer(),
              AllOf(StartsWith("HTTP/1.1 410 "), HasSubstr("no such image")));
}

TEST_F(HealthTest, IsGivenUpWithItsClient) {
  edge_.add("box", Kind::kDedicated, {kSandboxPort});
  RawClient client = waiting("box");
  client.close();
  std::this_thread::sleep_for(Millis(200));
  edge_.start("box", kSandboxPort, inner_.port());
  EXPECT_FALSE(inner_.accept(300));
}

TEST_F(HealthTest, OfOtherPortsIsNotHeld) {
  edge_.add("job1", Kind::kPlain, {8000, kSandboxPort});
  for (const char* path : {"/x/job1--8000/health", "/x/job1--49983/health"}) {
    EXPECT_THAT(ask(path, bearer(edge_.alice)), StartsWith("HTTP/1.1 503 "));
  }
}

TEST_F(HealthTest, OnlyThoseWhoMayCountAsHavingReachedIt) {
  const JobPtr job = edge_.add("box", Kind::kDedicated, {kSandboxPort});
  (void)ask("/x/box--49983/health");
  (void)ask("/x/box--49983/health", bearer(edge_.bob));
  EXPECT_FALSE(edge_.loop().call([&] { return job->row.healthSeen; }));
  (void)ask("/x/box--49983/v1/files", bearer(edge_.alice));
  EXPECT_TRUE(edge_.loop().call([&] { return job->row.healthSeen; }));
}

}  // namespace
}  // namespace cay::hub
