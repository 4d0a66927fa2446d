#include "hub/job_routes.h"

#include <gmock/gmock.h>

#include "hub/api_fixture.h"
#include "hub/bodies_fixture.h"

namespace cay::hub {
namespace {

using engine::Stage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobRoutesTest : public ApiTest {
 protected:
  std::vector<std::string> ids(const std::string& query = {}) {
    const Answer answer = get("/api/jobs/tester" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::vector<std::string> found;
    for (const json::Value& job : answer.json().as_array()) {
      found.emplace_back(job.at("id").as_string());
    }
    return found;
  }
  // A sandbox as the newest client asks for one.
  std::string sandbox(const std::string& kind) {
    const Answer answer = post("/api/jobs/tester", json::serialize(recordedBody("2.4.0", kind)));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.id();
  }
};

TEST_F(JobRoutesTest, AJobIsStoredAndTakenBeforeItIsAnswered) {
  const Answer answer =
      post("/api/jobs/tester",
           plainBody(
               R"("secrets":{"KEY":"hidden"},"labels":{"a":"b"},"timeoutSeconds":300,"attempts":2,)"
               R"("expose":{"ports":[8000,9000],"portsPublic":[9000]},)"
               R"("network":{"group":"train","aliases":["master"]})"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json::Value info = answer.json();
  EXPECT_EQ(answer.stage(), "SCHEDULING");
  EXPECT_EQ(info.at("owner").at("name"), "tester");
  EXPECT_EQ(info.at("owner").at("id"), json::Value(idOf("tester")));
  EXPECT_EQ(info.at("initiator").at("type"), "user");
  EXPECT_EQ(info.at("initiator").at("id"), json::Value(idOf("tester")));
  EXPECT_EQ(info.at("retry"), 1);
  EXPECT_EQ(info.at("status").at("exposeUrls").as_array().size(), 2U);
  EXPECT_EQ(answer.body.find("hidden"), std::string::npos);

  const std::string id = answer.id();
  EXPECT_EQ(id.size(), 24U);
  const engine::JobSpec spec = call([&] { return engine().spec(id); });
  EXPECT_EQ(spec.ns, "tester");
  EXPECT_EQ(spec.secrets, (engine::Pairs{{"KEY", "hidden"}}));
  EXPECT_EQ(spec.timeoutMs, 300'000);
  EXPECT_EQ(spec.attempts, 2U);
  EXPECT_EQ(spec.resources, engine::fourCpus().find("cpu-basic")->resources);
  EXPECT_GT(spec.resources.memoryBytes, 0U);
  EXPECT_EQ(hub().store().await(hub().store()->job(id)).value().ns, "tester");
}

TEST_F(JobRoutesTest, EveryClientsBodiesAreTaken) {
  for (const std::string client : kClients) {
    const json::Object bodies =
        json::parse(readTestData("bodies-" + client + ".json"))->as_object();
    for (const auto& [name, body] : bodies) {
      const bool scheduled = body.as_object().contains("jobSpec");
      const Answer answer = post(scheduled ? "/api/scheduled-jobs/tester" : "/api/jobs/tester",
                                 json::serialize(body));
      const bool refused = name == "ssh";  // the one thing that this hub does not have
      EXPECT_EQ(answer.status, refused ? 400 : 200) << client << " " << name << answer.body;
      if (refused) EXPECT_THAT(answer.error(), HasSubstr("'ssh'"));
    }
  }
}

TEST_F(JobRoutesTest, WhatCannotBeAJobIsRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"command":["true"]})", "dockerImage"},
      {R"({"command":["true"],"dockerImage":"a","spaceId":"a/b"})", "dockerImage"},
      {R"({"dockerImage":"a","command":[]})", "command"},
      {R"({"dockerImage":"a","command":["x"],"flavor":"no-such"})", "no-such"},
      {R"({"dockerImage":"a","command":["x"],"flavor":"h200"})", "h200"},
      {R"({"dockerImage":"a","command":["x"],"ssh":{"enabled":true}})", "ssh"},
      {R"({"dockerImage":"a","command":["x"],"expose":{"ports":[1],"portsPublic":[2]}})", "2"},
      {R"({"dockerImage":"a","command":["x"],"labels":{"a b":"c"}})", "labels"},
      {R"({"dockerImage":"a","command":["x"],"network":{"group":"A!"}})", "network.group"},
      {R"({"dockerImage":"a","command":["x"],"volumes":[{"type":"disk"}]})", "volumes"},
      {R"({"dockerImage":"a","command":["x"],"timeoutSeconds":"soon"})", "timeoutSeconds"},
  };
  for (const auto& [body, word] : cases) {
    const Answer answer = post("/api/jobs/tester", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.error(), HasSubstr(word));
    EXPECT_THAT(answer.field("X-Error-Message"), HasSubstr(word));
  }
  EXPECT_THAT(ids(), IsEmpty());
}

TEST_F(JobRoutesTest, BucketsAreForThoseOfTheirNamespace) {
  const auto withVolume = [](const std::string& type, const std::string& source) {
    return plainBody(R"("volumes":[{"type":")" + type + R"(","source":")" + source +
                     R"(","mountPath":"/data"}])");
  };
  EXPECT_EQ(post("/api/jobs/tester", withVolume("bucket", "tester/data")).status, 200);
  EXPECT_EQ(post("/api/jobs/tester", withVolume("bucket", "lab/data")).status, 200);
  EXPECT_EQ(post("/api/jobs/tester", withVolume("bucket", "huggingface/sbx-server")).status, 200);
  EXPECT_EQ(post("/api/jobs/tester", withVolume("model", "other/model")).status, 200);
  const Answer refused = post("/api/jobs/tester", withVolume("bucket", "other/data"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.error(), HasSubstr("other/data"));
  EXPECT_EQ(ids().size(), 4U);
}

TEST_F(JobRoutesTest, WhatTheEngineRefusesEndsWithItsReason) {
  call([&] {
    engine().refuseNext({.code = Code::kInvalid, .sys = 0, .message = "no such device here"});
  });
  const Answer refused = post("/api/jobs/tester", plainBody());
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.error(), "no such device here");
  EXPECT_THAT(ids("?stage=SCHEDULING&stage=RUNNING"), IsEmpty());
  const auto ended = ids("?stage=ERROR");
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(get(path(ended[0])).json().at("status").at("message"), "no such device here");
}

TEST_F(JobRoutesTest, InspectShowsWhatChangedAndTellsWhoAsked) {
  std::vector<std::string> seen;
  hub().state().onInspected = [&](const JobPtr& job, const Caller& caller) {
    seen.push_back(job->row.id + " by " + caller.principalId);
  };
  const std::string id = start();
  EXPECT_EQ(get(path(id)).stage(), "SCHEDULING");
  call([&] { engine().start(id); });
  EXPECT_EQ(get(path(id)).stage(), "RUNNING");
  call([&] { engine().finish(id, Stage::kError, "Job failed with exit code: 3"); });
  const Answer ended = get(path(id));
  EXPECT_EQ(ended.stage(), "ERROR");
  EXPECT_EQ(ended.json().at("status").at("message"), "Job failed with exit code: 3");
  EXPECT_EQ(seen, std::vector<std::string>(3, id + " by " + idOf("tester")));
  EXPECT_EQ(get(path("ffffffffffffffffffffffff")).status, 404);
  EXPECT_EQ(get("/api/jobs/lab/" + id).status, 404) << "of another namespace";
}

TEST_F(JobRoutesTest, ListsFilterByStageAndLabel) {
  const std::string a = start(R"("labels":{"team":"x","n":"1"})");
  const std::string b = start(R"("labels":{"team":"x","n":"2"})");
  const std::string c = start(R"("labels":{"team":"y"})");
  start({}, "lab");
  call([&] {
    engine().start(b);
    engine().finish(c, Stage::kCompleted);
  });
  EXPECT_THAT(ids(), ElementsAre(c, b, a));
  EXPECT_THAT(ids("?stage=RUNNING"), ElementsAre(b));
  EXPECT_THAT(ids("?stage=RUNNING&stage=COMPLETED"), ElementsAre(c, b));
  EXPECT_THAT(ids("?label=team%3Dx"), ElementsAre(b, a));
  EXPECT_THAT(ids("?label=team%3Dx&label=n=1"), ElementsAre(a));
  EXPECT_THAT(ids("?stage=SCHEDULING&label=team=y"), IsEmpty());
  EXPECT_THAT(ids("?stage=DELETED"), IsEmpty());
  EXPECT_THAT(ids("?stage=DELETED&stage=RUNNING"), ElementsAre(b));
  EXPECT_EQ(get("/api/jobs/tester?stage=running").status, 400);
  EXPECT_EQ(get("/api/jobs/tester?label=team").status, 400);
  EXPECT_EQ(get("/api/jobs/tester?cursor=x").status, 400);
}

TEST_F(JobRoutesTest, LongListsComeInPagesThatKeepTheFilter) {
  constexpr int kJobs = 205;
  for (int i = 0; i < kJobs; ++i) start(R"("labels":{"of":"many"})");
  start();
  std::vector<std::string> all;
  std::string next = "/api/jobs/tester?label=of%3Dmany&stage=SCHEDULING";
  int pages = 0;
  while (!next.empty()) {
    const Answer page = get(next);
    ASSERT_EQ(page.status, 200);
    ++pages;
    for (const json::Value& job : page.json().as_array()) {
      all.emplace_back(job.at("id").as_string());
    }
    const std::string link = page.field("Link");
    const std::string prefix = "<http://hub:7340";
    if (link.empty()) break;
    ASSERT_TRUE(link.starts_with(prefix)) << link;
    ASSERT_TRUE(link.ends_with(">; rel=\"next\"")) << link;
    next = link.substr(prefix.size(), link.find('>') - prefix.size());
    EXPECT_THAT(next, HasSubstr("label=of%3Dmany&stage=SCHEDULING&cursor="));
  }
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), kJobs);
}

TEST_F(JobRoutesTest, CancelEndsAJobOnce) {
  const std::string id = start();
  call([&] { engine().start(id); });
  const Answer first = post(path(id, "cancel"));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.stage(), "CANCELED");
  EXPECT_EQ(first.json().at("status").at("message"), "canceled by tester");
  const Answer second = post(path(id, "cancel"));
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.json().at("finishedAt"), first.json().at("finishedAt"));
  const std::string done = start();
  call([&] { engine().finish(done, Stage::kCompleted); });
  EXPECT_EQ(post(path(done, "cancel")).stage(), "COMPLETED");
  EXPECT_EQ(post(path("none", "cancel")).status, 404);
}

TEST_F(JobRoutesTest, LabelsAreReplaced) {
  const std::string id = start(R"("labels":{"old":"1"})");
  const Answer answer = ask("PUT", path(id, "labels"), R"({"labels":{"new":"2"}})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(json::serialize(answer.json().at("labels")), R"({"new":"2"})");
  EXPECT_EQ(call([&] { return engine().spec(id).labels; }), (engine::Pairs{{"new", "2"}}));
  EXPECT_THAT(ids("?label=new=2"), ElementsAre(id));
  EXPECT_EQ(ask("PUT", path(id, "labels"), R"({"labels":{"a b":"2"}})").status, 400);
  EXPECT_EQ(ask("PUT", path(id, "labels"), R"({})").status, 400);
  EXPECT_EQ(ask("PUT", path(id, "labels"), R"({"labels":{}})").status, 200);
  EXPECT_THAT(ids("?label=new=2"), IsEmpty());
}

TEST_F(JobRoutesTest, PortsAreReplaced) {
  const std::string id = start();
  EXPECT_TRUE(get(path(id)).json().at("expose").is_null());
  const Answer open =
      ask("PUT", path(id, "expose"), R"({"ports":[8000,9000],"portsPublic":[9000]})");
  EXPECT_EQ(open.status, 200);
  EXPECT_EQ(open.json().at("status").at("exposeUrls").at(0),
            json::Value("https://" + id + "--8000.cay.localhost:7343"));
  EXPECT_EQ(json::serialize(open.json().at("expose")),
            R"({"ports":[8000,9000],"portsPublic":[9000]})");
  const Answer closed = ask("PUT", path(id, "expose"), R"({"ports":[],"portsPublic":[]})");
  EXPECT_EQ(closed.status, 200);
  EXPECT_FALSE(closed.json().at("status").as_object().contains("exposeUrls"));
  EXPECT_EQ(ask("PUT", path(id, "expose"), R"({"ports":[1],"portsPublic":[2]})").status, 400);
  EXPECT_EQ(ask("PUT", path(id, "expose"), R"({"ports":[70000],"portsPublic":[]})").status, 400);
  call([&] { engine().finish(id, Stage::kCompleted); });
  EXPECT_EQ(ask("PUT", path(id, "expose"), R"({"ports":[1],"portsPublic":[]})").status, 409);
}

TEST_F(JobRoutesTest, ASandboxKeepsThePortOfItsServer) {
  const std::string dedicated = sandbox("sandbox");
  const std::string pool = sandbox("pool");
  const auto expose = [&](const std::string& id, const char* ports) {
    return ask("PUT", path(id, "expose"), ports).status;
  };
  for (const std::string& id : {dedicated, pool}) {
    EXPECT_EQ(expose(id, R"({"ports":[],"portsPublic":[]})"), 400);
    EXPECT_EQ(expose(id, R"({"ports":[8000],"portsPublic":[]})"), 400);
    EXPECT_EQ(expose(id, R"({"ports":[49983],"portsPublic":[49983]})"), 400);
    EXPECT_EQ(expose(id, R"({"ports":[49983],"portsPublic":[]})"), 200);
  }
  EXPECT_EQ(expose(dedicated, R"({"ports":[49983,8000],"portsPublic":[8000]})"), 200);
  EXPECT_EQ(expose(pool, R"({"ports":[49983,8000],"portsPublic":[]})"), 400);
}

TEST_F(JobRoutesTest, ACopyIsANewJobOfTheSameKind) {
  const std::string id = start(R"("secrets":{"KEY":"hidden"},"labels":{"a":"b"})");
  ask("PUT", path(id, "labels"), R"({"labels":{"later":"1"}})");
  const Answer copy = post(path(id, "duplicate"));
  ASSERT_EQ(copy.status, 200) << copy.body;
  EXPECT_NE(copy.id(), id);
  EXPECT_EQ(copy.json().at("initiator").at("type"), "duplicated-job");
  EXPECT_EQ(copy.json().at("initiator").at("id"), json::Value(id));
  EXPECT_EQ(json::serialize(copy.json().at("labels")), R"({"a":"b"})");
  EXPECT_EQ(call([&] { return engine().spec(copy.id()).secrets; }),
            (engine::Pairs{{"KEY", "hidden"}}));
  EXPECT_EQ(copy.json().at("command"), get(path(id)).json().at("command"));

  const Answer host = post(path(sandbox("pool"), "duplicate"));
  EXPECT_EQ(host.json().at("initiator").at("type"), "user");
  EXPECT_EQ(host.json().at("initiator").at("id"), json::Value(idOf("tester")));
  EXPECT_EQ(post(path("none", "duplicate")).status, 404);
}

TEST_F(JobRoutesTest, JobsOutliveTheHub) {
  const std::string runs = start();
  const std::string lost = start();
  call([&] {
    engine().start(runs);
    engine().lose(lost);
  });
  restart();
  EXPECT_EQ(get(path(runs)).stage(), "RUNNING");
  const Answer gone = get(path(lost));
  EXPECT_EQ(gone.stage(), "ERROR");
  EXPECT_THAT(std::string(gone.json().at("status").at("message").as_string()),
              HasSubstr("no trace"));
  EXPECT_THAT(ids(), ElementsAre(lost, runs));
}

TEST_F(JobRoutesTest, AFlavorThatHasGoneEndsOnlyWhatStillWaits) {
  {
    OpenStore store((dir_.path() / "hub.db").string());
    for (const Stage stage : {Stage::kScheduling, Stage::kRunning}) {
      JobRow row = rowOf(*json::parse(plainBody())->if_object()).value();
      row.seq = stage == Stage::kRunning ? 2 : 1;
      row.id = stage == Stage::kRunning ? "runs" : "waits";
      row.stage = stage;
      row.spec.replace(row.spec.find("cpu-basic"), 9, "gone");
      ASSERT_TRUE(store.await(store->insert(row)));
    }
  }
  EXPECT_THAT(std::string(get(path("waits")).json().at("status").at("message").as_string()),
              HasSubstr("'gone'"));
  // Its engine was asked, and happens to know nothing of it.
  EXPECT_EQ(get(path("runs")).json().at("status").at("message"),
            "the engine has no trace of this job");
}

}  // namespace
}  // namespace cay::hub
