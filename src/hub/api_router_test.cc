#include "hub/api_router.h"

#include <gmock/gmock.h>

#include <set>

#include "hub/api_fixture.h"
#include "hub/schema.h"

namespace cay::hub {
namespace {

using ::testing::HasSubstr;

class ApiRouterTest : public ApiTest {};

TEST_F(ApiRouterTest, WhoamiTellsWhoseTokenItIs) {
  const Answer answer = get("/api/whoami-v2");
  EXPECT_EQ(answer.status, 200);
  const json::Value me = answer.json();
  EXPECT_EQ(me.at("name"), "tester");
  EXPECT_EQ(me.at("id"), json::Value(idOf("tester")));
  EXPECT_EQ(me.at("type"), "user");
  ASSERT_EQ(me.at("orgs").as_array().size(), 1U);
  EXPECT_EQ(me.at("orgs").at(0).at("name"), "lab");
}

TEST_F(ApiRouterTest, ATokenIsNeeded) {
  const Answer none = ask("GET", "/api/whoami-v2", {}, "");
  EXPECT_EQ(none.status, 401);
  EXPECT_THAT(none.error(), HasSubstr("HF_TOKEN"));
  EXPECT_EQ(none.field("WWW-Authenticate"), "Bearer");
  tokenOf_["stranger"] = "hf_cayNobodyHasThis";
  const Answer wrong = ask("GET", "/api/whoami-v2", {}, "stranger");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.field("X-Error-Message"), "Invalid credentials in Authorization header");
  EXPECT_EQ(ask("GET", "/api/whoami-v2", {}, "proxy").status, 403);
  for (const char* path : {"/api/jobs/tester", "/api/scheduled-jobs/tester",
                           "/api/jobs/tester/x/logs", "/api/buckets/tester/data"}) {
    EXPECT_EQ(ask("GET", path, {}, "").status, 401) << path;
  }
}

TEST_F(ApiRouterTest, NamespacesOfOthersAreClosed) {
  const std::string id = start();
  for (const char* verb : {"", "/logs", "/metrics"}) {
    EXPECT_EQ(ask("GET", path(id) + verb, {}, "other").status, 403) << verb;
  }
  EXPECT_EQ(ask("POST", path(id, "cancel"), {}, "other").status, 403);
  EXPECT_EQ(ask("POST", "/api/jobs/tester", plainBody(), "other").status, 403);
  EXPECT_EQ(ask("GET", "/api/scheduled-jobs/tester", {}, "other").status, 403);
  const Answer answer = ask("GET", "/api/jobs/tester", {}, "other");
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.field("X-Error-Message"), HasSubstr("'tester'"));
  EXPECT_EQ(ask("GET", "/api/jobs/nobody", {}, "other").status, 403) << "no oracle";
  EXPECT_EQ(get("/api/jobs/lab").status, 200);
  EXPECT_EQ(ask("GET", "/api/jobs/other/" + id, {}, "other").status, 404)
      << "a job of somebody else is not in one's own namespace";
}

TEST_F(ApiRouterTest, EveryAnswerHasARequestOfItsOwn) {
  std::set<std::string> ids;
  for (const char* path : {"/api/whoami-v2", "/api/jobs/nobody", "/api/jobs/tester",
                           "/api/agent-harnesses", "/api/jobs/tester/none"}) {
    ids.insert(get(path).field("X-Request-Id"));
  }
  EXPECT_EQ(ids.size(), 5U);
  EXPECT_FALSE(ids.contains(""));
}

TEST_F(ApiRouterTest, WhatIsNotOursGoesElsewhere) {
  EXPECT_EQ(get("/api/models/a/b?x=1").body, "relay /api/models/a/b?x=1");
  EXPECT_EQ(ask("GET", "/a/b/resolve/main/x", {}, "").body, "relay /a/b/resolve/main/x");
  EXPECT_EQ(get("/api/jobs").body, "relay /api/jobs");
  EXPECT_EQ(get("/x/abc--80/index").body, "edge /x/abc--80/index");
  EXPECT_EQ(get("/x/nonsense").body, "edge /x/nonsense");
  EXPECT_EQ(ask("CONNECT", "abc--80.cay.localhost:7343", {}, "").body,
            "edge abc--80.cay.localhost:7343");
}

TEST_F(ApiRouterTest, MethodsThatARouteHasNotAreNamed) {
  const Answer answer = ask("DELETE", "/api/jobs/tester");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.field("Allow"), "GET, POST");
  EXPECT_EQ(ask("POST", "/api/whoami-v2").status, 405);
  const Answer head = ask("HEAD", "/api/whoami-v2");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(ask("HEAD", "/api/jobs/tester/" + start() + "/logs").status, 200);
}

TEST_F(ApiRouterTest, HealthIsToldWithoutAToken) {
  start();
  const std::string id = start();
  call([&] { engine().start(id); });
  const Answer answer = ask("GET", "/healthz", {}, "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json().at("status"), "ok");
  EXPECT_EQ(answer.json().at("jobs").at("scheduling"), 1);
  EXPECT_EQ(answer.json().at("jobs").at("running"), 1);
}

TEST_F(ApiRouterTest, HarnessesAreAnEmptyListThatClientsKeep) {
  const Answer answer = ask("GET", "/api/agent-harnesses", {}, "");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"standardEnvVars":[],"harnesses":{}})");
}

TEST_F(ApiRouterTest, HardwareIsWhatTheEngineHas) {
  for (const char* path : {"/api/jobs/hardware", "/api/spaces/hardware"}) {
    const Answer answer = ask("GET", path, {}, "");
    ASSERT_EQ(answer.status, 200);
    const json::Value first = answer.json().at(0);
    EXPECT_EQ(first.at("name"), "cpu-basic");
    EXPECT_EQ(first.at("cpu"), "2 vCPU");
    EXPECT_EQ(first.at("ram"), "1 GB");
    EXPECT_TRUE(first.at("accelerator").is_null());
    EXPECT_EQ(first.at("unitCostMicroUSD"), 0);
    EXPECT_TRUE(first.at("unitCostUSD").is_double());
    EXPECT_EQ(first.at("unitLabel"), "minute");
  }
}

TEST_F(ApiRouterTest, TheServerOfSandboxesComesWithoutAToken) {
  const std::string bucket = "/buckets/huggingface/sbx-server/resolve/";
  EXPECT_EQ(ask("GET", bucket + "sbx-server", {}, "").status, 404) << "there is none yet";
  const std::string program(300'000, 'p');
  (void)dir_.write("cay-host", program);
  for (const char* name : {"sbx-server", "sbx-server-eb2b04f7"}) {
    const Answer answer = ask("GET", bucket + name, {}, "");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, program);
    EXPECT_EQ(answer.field("Content-Type"), "application/octet-stream");
  }
  const Answer head = ask("HEAD", bucket + "sbx-server", {}, "");
  EXPECT_EQ(head.field("Content-Length"), "300000");
  EXPECT_EQ(head.body, "");
  auto client = hub().connect();
  client.send("GET " + bucket + "sbx-server HTTP/1.1\r\nHost: h\r\nIf-None-Match: " +
              head.field("ETag") + "\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(parse(client.receiveToEnd()).status, 304);
  EXPECT_EQ(ask("GET", bucket + "other", {}, "").status, 404);
  EXPECT_EQ(ask("GET", bucket + "sbx-serverx", {}, "").status, 404);
}

TEST_F(ApiRouterTest, UploadsAreToldWhereToGo) {
  for (const char* method : {"GET", "POST"}) {
    const Answer answer = ask(method, "/api/buckets/tester/jobs-artifacts/xet-write-token");
    EXPECT_EQ(answer.status, 501);
    EXPECT_THAT(answer.error(), HasSubstr("/state/volumes/buckets/tester/jobs-artifacts "));
  }
  EXPECT_THAT(post("/api/buckets/../x").error(), HasSubstr("/state/volumes/buckets and"));
}

TEST_F(ApiRouterTest, BodiesAreBoundedAndObjects) {
  EXPECT_EQ(post("/api/jobs/tester", std::string((4 << 20) + 1, ' ')).status, 413);
  for (const char* body : {"[]", "{", "\"x\"", "nope"}) {
    EXPECT_EQ(post("/api/jobs/tester", body).status, 400) << body;
  }
  EXPECT_EQ(get("/api/jobs/tester?label=%zz").status, 400);
}

TEST_F(ApiRouterTest, AFullDiskIs507) {
  const std::string before = start();
  call([&] {
    engine().refuseNext({.code = Code::kExhausted, .sys = ENOSPC, .message = "no space left"});
  });
  const Answer answer = post("/api/jobs/tester", plainBody());
  EXPECT_EQ(answer.status, 507);
  EXPECT_EQ(answer.error(), "no space left");
  EXPECT_EQ(get(path(before)).status, 200);
}

TEST_F(ApiRouterTest, TokensThatAnotherProcessMakesAndRevokesCount) {
  hub();
  const MadeToken made = makeToken(
      {.name = "late", .role = Role::kUser, .principal = idOf("tester"), .namespaces = {}},
      wallMs());
  tokenOf_["late"] = made.secret;
  EXPECT_EQ(ask("GET", "/api/whoami-v2", {}, "late").status, 401);
  auto other = openHubDatabase((dir_.path() / "hub.db").string());
  ASSERT_TRUE(other);
  ASSERT_TRUE(insertToken(*other, made.row));
  EXPECT_EQ(ask("GET", "/api/whoami-v2", {}, "late").status, 200) << "at once";
  ASSERT_TRUE(revokeToken(*other, made.row.id, wallMs()));
  hub().store().await(hub().state().callers.refresh());
  EXPECT_EQ(ask("GET", "/api/whoami-v2", {}, "late").status, 401);
}

}  // namespace
}  // namespace cay::hub
