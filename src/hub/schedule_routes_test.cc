#include "hub/schedule_routes.h"

#include <gmock/gmock.h>

#include "base/dates.h"
#include "hub/api_fixture.h"
#include "hub/retention.h"

namespace cay::hub {
namespace {

using engine::Stage;
using ::testing::HasSubstr;

constexpr int64_t kHourMs = 3'600'000;

class ScheduleRoutesTest : public ApiTest {
 protected:
  Answer make(const std::string& schedule, const std::string& more = {},
              const std::string& spec = {}) {
    return post("/api/scheduled-jobs/tester", R"({"jobSpec":)" + plainBody(spec) +
                                                  R"(,"schedule":")" + schedule + "\"" +
                                                  (more.empty() ? "" : "," + more) + "}");
  }
  static std::string at(const std::string& id, const std::string& verb = {}) {
    return "/api/scheduled-jobs/tester/" + id + (verb.empty() ? "" : "/" + verb);
  }
  void runDue(int64_t nowMs) { hub().store().await(hub().scheduler().runDue(nowMs)); }
  size_t jobs() { return get("/api/jobs/tester").json().as_array().size(); }
};

TEST_F(ScheduleRoutesTest, TheBucketOfAnotherIsRefusedNow) {
  const auto volume = [](const std::string& source) {
    return R"("volumes":[{"type":"bucket","source":")" + source + R"(","mountPath":"/data"}])";
  };
  EXPECT_EQ(make("@hourly", {}, volume("other/data")).status, 403);
  EXPECT_EQ(make("@hourly", {}, volume("tester/data")).status, 200);
}

TEST_F(ScheduleRoutesTest, WhatNobodyMayAskForNowIsNotRun) {
  ASSERT_EQ(make("@hourly").status, 200);
  ScheduleRow old = call([&] { return hub().scheduler().list("tester").front(); });
  const std::string good = old.id;
  // As one of a time when buckets were everybody's.
  old.id = "5e9ecfc04957053f60648a40";
  old.spec =
      plainBody(R"("volumes":[{"type":"bucket","source":"other/data","mountPath":"/data"}])");
  ASSERT_TRUE(hub().store().await(hub().scheduler().add(old)));
  const Answer asked = post(at(old.id, "run"));
  EXPECT_EQ(asked.status, 403) << asked.body;
  EXPECT_THAT(asked.error(), HasSubstr("'other/data'"));
  runDue(wallMs() + 2 * kHourMs);
  const json::Value jobs = get("/api/jobs/tester").json();
  ASSERT_EQ(jobs.as_array().size(), 1U);
  EXPECT_EQ(jobs.at(0).at("initiator").at("id"), json::Value(good));
}

TEST_F(ScheduleRoutesTest, ARightThatWasTakenAwayEndsWhatItAllowed) {
  const std::string body = R"({"jobSpec":)" + plainBody() + R"(,"schedule":"@hourly"})";
  ASSERT_EQ(post("/api/scheduled-jobs/lab", body).status, 200);
  int64_t hours = 0;
  const auto jobsAfterAnHour = [&] {
    runDue(wallMs() + ++hours * 2 * kHourMs);
    return call([&] { return hub().state().jobs.live().size(); });
  };
  EXPECT_EQ(jobsAfterAnHour(), 1U);
  call([&] {
    for (const JobPtr& job : hub().state().jobs.live()) {
      engine::Status over;
      over.stage = Stage::kCompleted;
      hub().state().jobs.changed(job->row.id, over);
    }
    const PrincipalRow tester{.id = idOf("tester"), .name = "tester", .type = "user"};
    hub().state().callers.replace({.principals = {tester}, .tokens = {}});
  });
  EXPECT_EQ(jobsAfterAnHour(), 0U);
}

TEST_F(ScheduleRoutesTest, AScheduleIsWhatClientsRead) {
  const Answer made = make("@hourly", {},
                           R"("secrets":{"KEY":"hidden"},"labels":{"a":"b"},)"
                           R"("timeoutSeconds":60,"attempts":3)");
  ASSERT_EQ(made.status, 200) << made.body;
  const json::Value info = made.json();
  EXPECT_EQ(info.at("schedule"), "@hourly");
  EXPECT_EQ(info.at("suspend"), false);
  EXPECT_EQ(info.at("concurrency"), false);
  EXPECT_EQ(info.at("owner").at("name"), "tester");
  EXPECT_TRUE(info.at("status").at("lastJob").is_null());
  const auto next = parseIsoDate(info.at("status").at("nextJobRunAt").as_string());
  ASSERT_TRUE(next);
  EXPECT_EQ(*next / 1000 % kHourMs, 0);
  EXPECT_GT(*next / 1000, wallMs() - 1000);
  const json::Value& spec = info.at("jobSpec");
  EXPECT_EQ(spec.at("dockerImage"), "python:3.12");
  EXPECT_EQ(spec.at("timeout"), 60);
  EXPECT_EQ(spec.at("retry"), 2);
  EXPECT_EQ(json::serialize(spec.at("secrets")), R"({"KEY":null})");
  EXPECT_EQ(made.body.find("hidden"), std::string::npos);
  EXPECT_EQ(get(at(made.id())).json(), info);
  EXPECT_EQ(get("/api/scheduled-jobs/tester").json().as_array().size(), 1U);
  EXPECT_EQ(get("/api/scheduled-jobs/tester?label=a=b").json().as_array().size(), 1U);
  EXPECT_EQ(get("/api/scheduled-jobs/tester?label=a=c").json().as_array().size(), 0U);
}

TEST_F(ScheduleRoutesTest, WhatIsWrongIsToldAtOnce) {
  EXPECT_EQ(make("every day").status, 400);
  EXPECT_EQ(make("0 0 30 2 *").status, 400) << "never comes";
  EXPECT_EQ(make("@daily", R"("suspend":"yes")").status, 400);
  EXPECT_THAT(make("@daily", {}, R"("ssh":{"enabled":true})").error(), HasSubstr("ssh"));
  EXPECT_EQ(post("/api/scheduled-jobs/tester", R"({"schedule":"@daily"})").status, 400);
  EXPECT_EQ(post("/api/scheduled-jobs/tester", R"({"jobSpec":{"dockerImage":"a","command":["x"],)"
                                               R"("flavor":"no-such"},"schedule":"@daily"})")
                .status,
            400);
  for (const char* verb : {"suspend", "resume", "run"}) {
    EXPECT_EQ(post(at("none", verb)).status, 404) << verb;
  }
  EXPECT_EQ(get(at("none")).status, 404);
  EXPECT_EQ(ask("DELETE", at("none")).status, 404);
  const std::string id = make("@daily").id();
  EXPECT_EQ(get("/api/scheduled-jobs/lab/" + id).status, 404);
  EXPECT_EQ(ask("DELETE", "/api/scheduled-jobs/lab/" + id).status, 404);
}

TEST_F(ScheduleRoutesTest, RunsStartWhenTheyAreDue) {
  const Answer made = make("@hourly", {}, R"("secrets":{"KEY":"hidden"},"labels":{"a":"b"})");
  runDue(wallMs());
  EXPECT_EQ(jobs(), 0U);
  runDue(wallMs() + kHourMs);
  ASSERT_EQ(jobs(), 1U);
  const json::Value job = get("/api/jobs/tester").json().at(0);
  EXPECT_EQ(job.at("initiator").at("type"), "scheduled-job");
  EXPECT_EQ(job.at("initiator").at("id"), json::Value(made.id()));
  EXPECT_EQ(json::serialize(job.at("labels")), R"({"a":"b"})");
  const std::string id(job.at("id").as_string());
  EXPECT_EQ(call([&] { return engine().spec(id).secrets; }), (engine::Pairs{{"KEY", "hidden"}}));
  EXPECT_EQ(get(at(made.id())).json().at("status").at("lastJob").at("id"), json::Value(id));
  runDue(wallMs() + kHourMs);
  EXPECT_EQ(jobs(), 1U) << "not twice for the same hour";
}

TEST_F(ScheduleRoutesTest, OneAtATimeUnlessAllowed) {
  const std::string one = make("@hourly").id();
  const Answer first = post(at(one, "run"));
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.stage(), "SCHEDULING");
  EXPECT_EQ(post(at(one, "run")).status, 409);
  runDue(wallMs() + kHourMs);
  EXPECT_EQ(jobs(), 1U) << "skipped, not put off";
  call([&] { engine().finish(first.id(), Stage::kCompleted); });
  EXPECT_EQ(post(at(one, "run")).status, 200);

  const std::string many = make("@hourly", R"("concurrency":true)").id();
  EXPECT_EQ(post(at(many, "run")).status, 200);
  EXPECT_EQ(post(at(many, "run")).status, 200);
}

TEST_F(ScheduleRoutesTest, OneAtATimeAlsoWhenTwoAskAtOnce) {
  const std::string id = make("@hourly").id();
  std::vector<cay::testing::RawClient> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(hub().connect());
    clients.back().send(request("POST", at(id, "run")));
  }
  int started = 0;
  for (auto& client : clients) {
    const int status = parse(client.receiveToEnd()).status;
    started += status == 200 ? 1 : 0;
    EXPECT_TRUE(status == 200 || status == 409) << status;
  }
  EXPECT_EQ(started, 1);
}

TEST_F(ScheduleRoutesTest, SuspendedOnesRunOnlyByHand) {
  const std::string id = make("@hourly", R"("suspend":true,"concurrency":true)").id();
  EXPECT_TRUE(get(at(id)).json().at("status").at("nextJobRunAt").is_null());
  runDue(wallMs() + kHourMs);
  EXPECT_EQ(jobs(), 0U);
  EXPECT_EQ(post(at(id, "run")).status, 200);
  const Answer resumed = post(at(id, "resume"));
  EXPECT_EQ(resumed.json().at("suspend"), false);
  EXPECT_TRUE(resumed.json().at("status").at("nextJobRunAt").is_string());
  runDue(wallMs() + kHourMs);
  EXPECT_EQ(jobs(), 2U);
  EXPECT_EQ(post(at(id, "suspend")).json().at("suspend"), true);
  runDue(wallMs() + 2 * kHourMs);
  EXPECT_EQ(jobs(), 2U);
}

TEST_F(ScheduleRoutesTest, SchedulesChange) {
  const std::string id = make("@hourly").id();
  const Answer moved = post(at(id, "schedule"), R"({"schedule":"30 5 * * *"})");
  EXPECT_EQ(moved.status, 200);
  EXPECT_EQ(moved.json().at("schedule"), "30 5 * * *");
  EXPECT_THAT(std::string(moved.json().at("status").at("nextJobRunAt").as_string()),
              HasSubstr("T05:30:00"));
  EXPECT_EQ(post(at(id, "schedule"), R"({"schedule":"x"})").status, 400);
  EXPECT_EQ(post(at(id, "schedule"), R"({})").status, 400);
  const Answer labelled = ask("PUT", at(id, "labels"), R"({"labels":{"k":"v"}})");
  EXPECT_EQ(json::serialize(labelled.json().at("jobSpec").at("labels")), R"({"k":"v"})");
  EXPECT_EQ(json::serialize(post(at(id, "run")).json().at("labels")), R"({"k":"v"})");
  EXPECT_EQ(ask("DELETE", at(id)).status, 200);
  EXPECT_EQ(get(at(id)).status, 404);
  EXPECT_EQ(get("/api/scheduled-jobs/tester").body, "[]");
}

TEST_F(ScheduleRoutesTest, WhatWasMissedIsOver) {
  const std::string id = make("* * * * *").id();
  const std::string gone = make("@hourly").id();
  EXPECT_EQ(ask("DELETE", at(gone)).status, 200);
  // As if no hub had run for an hour.
  ScheduleRow row = hub().scheduler().find("tester", id).value();
  row.nextMs -= kHourMs;
  ASSERT_TRUE(hub().store().await(hub().store()->put(row)));
  restart();
  const int64_t now = wallMs();
  EXPECT_GT(hub().scheduler().find("tester", id).value().nextMs, now - 1000);
  EXPECT_EQ(get(at(gone)).status, 404);
  EXPECT_EQ(get(at(id)).json().at("jobSpec").at("command").at(0), "true");
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(ScheduleRoutesTest, AFailedRunLeavesTheScheduleInPlace) {
  const std::string id = make("@hourly").id();
  call([&] { engine().refuseNext({.code = Code::kInvalid, .sys = 0, .message = "not today"}); });
  EXPECT_EQ(post(at(id, "run")).error(), "not today");
  EXPECT_EQ(post(at(id, "run")).status, 200);
}

TEST_F(ScheduleRoutesTest, OldJobsAndTheirLogsGoTogether) {
  const std::string old = start();
  const std::string lives = start();
  const std::string young = start();
  call([&] {
    engine().finish(old, Stage::kCompleted);
    engine().finish(young, Stage::kCompleted);
  });
  ASSERT_TRUE(hub().store().await(hub().state().jobs.settled(Millis(15'000))));
  const auto forget = [&](Retention retention, int64_t nowMs) {
    return hub().store().await(forgetOldJobs(hub().state(), retention, nowMs)).value();
  };
  EXPECT_EQ(forget({.mostAgeMs = kHourMs, .mostJobs = 10}, wallMs()), 0U);
  EXPECT_EQ(forget({.mostAgeMs = kHourMs, .mostJobs = 1}, wallMs()), 1U) << "too many";
  EXPECT_EQ(get(path(old)).status, 404);
  EXPECT_FALSE(call([&] { return engine().has(old); }));
  EXPECT_TRUE(call([&] { return engine().has(young); }));
  EXPECT_EQ(forget({.mostAgeMs = kHourMs, .mostJobs = 10}, wallMs() + 2 * kHourMs), 1U)
      << "too old";
  EXPECT_FALSE(call([&] { return engine().has(young); }));
  EXPECT_EQ(get(path(lives)).stage(), "SCHEDULING") << "only ended ones";
}

}  // namespace
}  // namespace cay::hub
