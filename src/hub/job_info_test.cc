#include "hub/job_info.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "hub/bodies_fixture.h"

namespace cay::hub {
namespace {

constexpr int64_t kNow = 1767225609999;
const EdgeAddress kEdge{.domain = "cay.localhost", .tlsPort = 7343};
const PrincipalRow kOwner{
    .id = "5e9ecfc04957053f60648a3e", .name = "tester", .type = "user", .createdMs = 0};

json::Object infoOf(const JobRow& row) {
  const auto info = jobInfo(row, kOwner, kEdge, kNow);
  EXPECT_TRUE(info) << info.error().message;
  return info.value_or(json::Object());
}

json::Object infoOf(const std::string& client, const std::string& name) {
  return infoOf(rowOf(recordedBody(client, name)).value());
}

// Whole answers, which tests/hub/test_job_info.py gives to the clients' own constructors.
TEST(JobInfoTest, IsAsItIsWritten) {
  JobRow running = rowOf(recordedBody("2.4.0", "everything")).value();
  running.stage = engine::Stage::kRunning;
  running.startedMs = 1767225603500;
  running.message = "attempt 2 of 3";
  running.attempt = 2;
  running.image = "host (alias of app)";
  running.notes = {"loopback only"};
  JobRow ended = rowOf(recordedBody("2.0.0", "space")).value();
  ended.stage = engine::Stage::kError;
  ended.startedMs = 1767225601000;
  ended.finishedMs = 1767225602000;
  ended.message = "Job failed with exit code: 3";
  ended.initiatorType = "scheduled-job";
  ended.initiatorId = "6b0000000000000000000001";
  ended.initiatorName = "";
  json::Object all;
  all["waiting"] = infoOf("2.4.0", "plain");
  all["running"] = infoOf(running);
  all["ended"] = infoOf(ended);
  all["sandbox"] = infoOf("1.31.0", "sandbox");
  all["pool"] = infoOf("2.4.0", "pool");
  const auto expected = json::parse(readTestData("job-info.json"));
  ASSERT_TRUE(expected);
  EXPECT_EQ(expected->as_object().size(), all.size());
  for (const auto& [name, info] : all) EXPECT_EQ(info, expected->at(name)) << name;
}

class InfoForClient : public ::testing::TestWithParam<const char*> {};

// What newer clients demand of the host of a pool before they send it anything.
TEST_P(InfoForClient, OfAPoolIsAdmitted) {
  const json::Object body = recordedBody(GetParam(), "pool");
  const json::Object info = infoOf(GetParam(), "pool");
  EXPECT_EQ(info.at("initiator").at("id"), "5e9ecfc04957053f60648a3e");
  EXPECT_EQ(info.at("command"), body.at("command"));
  EXPECT_EQ(info.at("flavor"), body.at("flavor"));
  EXPECT_EQ(info.at("dockerImage"), body.at("dockerImage"));
  EXPECT_EQ(info.at("owner").at("name"), "tester");
  EXPECT_EQ(info.at("environment").at("SBX_CAPACITY"), "7");
  const json::Array& urls = info.at("status").at("exposeUrls").as_array();
  ASSERT_EQ(urls.size(), 1U);
  EXPECT_EQ(urls[0], "https://6a0000000000000000000001--49983.cay.localhost:7343");
  EXPECT_EQ(info.at("labels"), body.at("labels"));
  EXPECT_EQ(info.at("volumes"), body.at("volumes"));
}

TEST_P(InfoForClient, HasNoSecretAndNoEndpoint) {
  for (const char* name : {"plain", "everything", "space", "uv", "sandbox", "pool"}) {
    const json::Object info = infoOf(GetParam(), name);
    EXPECT_FALSE(info.contains("endpoint"));
    for (const auto& [secret, value] : info.at("secrets").as_object()) {
      EXPECT_TRUE(value.is_null()) << secret;
    }
    const std::string text = json::serialize(info);
    const json::Object body = recordedBody(GetParam(), name);
    if (const json::Value* secrets = body.if_contains("secrets")) {
      for (const auto& [secret, value] : secrets->as_object()) {
        EXPECT_TRUE(info.at("secrets").as_object().contains(secret));
        const std::string hidden = json::scalarText(value).value();
        if (hidden.size() > 2) EXPECT_EQ(text.find(hidden), std::string::npos) << secret;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clients, InfoForClient, ::testing::ValuesIn(kClients));

TEST(JobInfoTest, DurationsAreWholeSecondsAndNeverNegative) {
  JobRow row = rowOf(recordedBody("2.4.0", "plain")).value();
  json::Object durations = infoOf(row).at("durations").as_object();
  EXPECT_TRUE(durations.at("schedulingSecs").is_null());
  EXPECT_TRUE(durations.at("runningSecs").is_null());
  EXPECT_EQ(durations.at("totalSecs"), 9);
  row.startedMs = row.createdMs + 2999;
  row.finishedMs = row.createdMs - 5000;
  durations = infoOf(row).at("durations").as_object();
  EXPECT_EQ(durations.at("schedulingSecs"), 2);
  EXPECT_EQ(durations.at("runningSecs"), 0);
  EXPECT_EQ(durations.at("totalSecs"), 0);
}

TEST(JobInfoTest, TextsFromOutsideCannotBreakIt) {
  JobRow row = rowOf(recordedBody("2.4.0", "plain")).value();
  row.message = "bad \xFF\xE2\x80\xA8 bytes";
  row.notes = {"\xC3"};
  row.image = "\x80";
  const std::string text = json::serialize(infoOf(row));
  EXPECT_TRUE(json::parse(text));
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; }));
}

TEST(JobInfoTest, LabelsAndPortsAreThoseOfTheRow) {
  JobRow row = rowOf(recordedBody("2.4.0", "everything")).value();
  row.labels = {{"new", "1"}};
  row.ports.clear();
  row.publicPorts.clear();
  const json::Object info = infoOf(row);
  EXPECT_EQ(info.at("labels"), json::Value(json::Object{{"new", "1"}}));
  EXPECT_TRUE(info.at("expose").is_null());
  EXPECT_FALSE(info.at("status").as_object().contains("exposeUrls"));
}

TEST(JobInfoTest, ANamespaceHasAnOwner) {
  EXPECT_EQ(ownerOf("tester", {kOwner}), kOwner);
  const PrincipalRow team = ownerOf("team", {kOwner});
  EXPECT_EQ(team.type, "org");
  EXPECT_EQ(team.id.size(), 24U);
  EXPECT_EQ(team, ownerOf("team", {}));
}

TEST(JobInfoTest, ABrokenRowIsAnError) {
  JobRow row = rowOf(recordedBody("2.4.0", "plain")).value();
  for (const char* spec : {"", "[]", "{}", R"({"environment":{},"attempts":"x"})"}) {
    row.spec = spec;
    EXPECT_FALSE(jobInfo(row, kOwner, kEdge, kNow)) << spec;
  }
}

}  // namespace
}  // namespace cay::hub
