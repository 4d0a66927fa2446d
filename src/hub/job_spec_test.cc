#include "hub/job_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/bodies_fixture.h"

namespace cay::hub {
namespace {

using engine::JobSpec;
using engine::Kind;
using engine::VolumeRef;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

JobSpec specOf(const json::Object& body) {
  const auto row = rowOf(body);
  EXPECT_TRUE(row) << row.error().message;
  if (!row) return {};
  const auto spec = jobSpecOf(*row);
  EXPECT_TRUE(spec) << spec.error().message;
  return spec.value_or(JobSpec{});
}

// A small body with one field changed by its JSON text; "" leaves it out.
json::Object bodyWith(const std::string& name, const std::string& value) {
  json::Object body{{"command", {"true", "-x"}}, {"dockerImage", "python:3.12"}};
  if (value.empty()) {
    body.erase(name);
  } else {
    body[name] = json::parse(value).value();
  }
  return body;
}

class RecordedBody : public ::testing::TestWithParam<const char*> {};

TEST_P(RecordedBody, OfAPlainJob) {
  JobSpec expected;
  expected.id = "6a0000000000000000000001";
  expected.ns = "tester";
  expected.image = "python:3.12";
  expected.command = {"true"};
  expected.flavor = "cpu-basic";
  expected.timeoutMs = 86'400'000;
  JobSpec spec = specOf(recordedBody(GetParam(), "plain"));
  ASSERT_EQ(spec.labels.size(), 1U);
  EXPECT_EQ(spec.labels[0].first, "name");
  expected.labels = spec.labels;
  EXPECT_EQ(spec, expected);
}

TEST_P(RecordedBody, WithEverything) {
  const JobSpec spec = specOf(recordedBody(GetParam(), "everything"));
  EXPECT_EQ(spec.kind, Kind::kPlain);
  EXPECT_EQ(spec.image, "registry.example/team/app@sha256:" + std::string(64, '0'));
  EXPECT_THAT(spec.command, ElementsAre("python", "-c", "print('\xC3\xA9\xE2\x80\xA8')"));
  EXPECT_THAT(spec.env, ElementsAre(Pair("TEXT", "x"), Pair("NUMBER", "1"), Pair("FRACTION", "1.5"),
                                    Pair("YES", "true"), Pair("NONE", "")));
  EXPECT_THAT(spec.secrets, ElementsAre(Pair("KEY", "s"), Pair("PIN", "7")));
  EXPECT_EQ(spec.flavor, "cpu-upgrade");
  EXPECT_EQ(spec.timeoutMs, 5'400'000);
  const VolumeRef bucket{VolumeRef::Type::kBucket, "tester/data", "/data", "a/b", "", false};
  const VolumeRef model{VolumeRef::Type::kModel, "org/model", "/model", "", "v1", true};
  EXPECT_THAT(spec.volumes, ElementsAre(bucket, model));
  const bool newest = std::string(GetParam()) == "2.4.0";
  const bool groups = std::string(GetParam()) != "1.31.0";
  EXPECT_EQ(spec.attempts, newest ? 3U : 1U);
  EXPECT_EQ(spec.groupName, groups ? "train" : "");
  EXPECT_EQ(spec.group, groups ? "tester/65f1/train" : "");
  if (groups) EXPECT_THAT(spec.aliases, ElementsAre("master", "w-0"));
  const auto row = rowOf(recordedBody(GetParam(), "everything"));
  EXPECT_EQ(row->ports, newest ? (std::vector<uint16_t>{8000, 9000}) : std::vector<uint16_t>{8000});
  EXPECT_EQ(row->publicPorts, newest ? std::vector<uint16_t>{9000} : std::vector<uint16_t>{});
}

TEST_P(RecordedBody, OfASpaceAndOfAScript) {
  EXPECT_EQ(specOf(recordedBody(GetParam(), "space")).image, "space:org/app");
  EXPECT_THAT(
      specOf(recordedBody(GetParam(), "uv")).command,
      ElementsAre("uv", "run", "--with", "torch", "https://example.com/script.py", "--x", "1"));
}

TEST_P(RecordedBody, WithSshIsRefusedInOneSentence) {
  const auto refused = parseJobWish(recordedBody(GetParam(), "ssh"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("'ssh' is not there"));
}

TEST_P(RecordedBody, OfAScheduledJobHasAJobInIt) {
  const json::Object body = recordedBody(GetParam(), "scheduled");
  EXPECT_EQ(specOf(body.at("jobSpec").as_object()).timeoutMs, 300'000);
}

TEST_P(RecordedBody, OfASandboxIsRecognised) {
  const json::Object body = recordedBody(GetParam(), "sandbox");
  const JobSpec spec = specOf(body);
  EXPECT_EQ(spec.kind, Kind::kDedicated);
  EXPECT_EQ(spec.server.token, body.at("secrets").at("SBX_TOKEN").as_string());
  EXPECT_EQ(spec.server.idleTimeoutMs, 600'000);
  EXPECT_EQ(spec.server.compatHostToken, std::string(GetParam()) == "1.31.0");
  EXPECT_EQ(spec.server.capacity, 0U);
  // Nothing of the bootstrap enters it, everything else does.
  EXPECT_THAT(spec.env, ElementsAre(Pair("A", "1")));
  EXPECT_THAT(spec.secrets, ElementsAre(Pair("KEY", "s"), Pair("HF_TOKEN", "hf_test")));
  ASSERT_EQ(spec.volumes.size(), 2U);
  EXPECT_EQ(spec.volumes[0].source, "tester/data");
  EXPECT_EQ(rowOf(body)->ports, std::vector<uint16_t>{49983});

  const JobSpec never = specOf(recordedBody(GetParam(), "sandbox_never_idle"));
  EXPECT_EQ(never.kind, Kind::kDedicated);
  EXPECT_EQ(never.server.idleTimeoutMs, 0);
  EXPECT_THAT(never.volumes, IsEmpty());
  EXPECT_THAT(never.secrets, IsEmpty());
}

TEST_P(RecordedBody, OfAPoolIsRecognised) {
  const JobSpec spec = specOf(recordedBody(GetParam(), "pool"));
  EXPECT_EQ(spec.kind, Kind::kPool);
  EXPECT_EQ(spec.server.capacity, 7U);
  EXPECT_EQ(spec.server.idleTimeoutMs, 3'600'000);
  EXPECT_EQ(spec.server.compatHostToken, std::string(GetParam()) == "1.31.0");
  EXPECT_FALSE(spec.server.token.empty());
  EXPECT_THAT(spec.env, IsEmpty());
}

TEST_P(RecordedBody, GivesTheSameJobWhenItIsReadFromItsRow) {
  for (const char* name : {"plain", "everything", "space", "uv", "sandbox", "pool"}) {
    const auto first = parseJobWish(recordedBody(GetParam(), name));
    ASSERT_TRUE(first);
    json::Object again = json::parse(first->spec).value().as_object();
    EXPECT_FALSE(again.contains("secrets"));
    again["secrets"] = json::parse(first->secrets).value();
    const auto second = parseJobWish(again);
    ASSERT_TRUE(second) << second.error().message;
    EXPECT_EQ(second->spec, first->spec) << name;
    EXPECT_EQ(second->secrets, first->secrets);
    EXPECT_EQ(second->kind, first->kind);
    EXPECT_EQ(second->labels, first->labels);
    EXPECT_EQ(second->expose.all, first->expose.all);
  }
}

TEST_P(RecordedBody, KeepsSecretsOutOfTheSpec) {
  for (const char* name : {"everything", "sandbox", "pool"}) {
    const json::Object body = recordedBody(GetParam(), name);
    const auto wish = parseJobWish(body);
    ASSERT_TRUE(wish);
    for (const auto& [key, value] : body.at("secrets").as_object()) {
      const std::string text = json::scalarText(value).value();
      if (text.size() > 2) EXPECT_EQ(wish->spec.find(text), std::string::npos) << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clients, RecordedBody, ::testing::ValuesIn(kClients));

// Each of the marks is needed: a user's own job with some of them runs as it is.
TEST(JobSpecTest, HalfASandboxIsAPlainJob) {
  const json::Object whole = recordedBody("2.4.0", "sandbox");
  const auto without = [&](auto change) {
    json::Object body = whole;
    change(body);
    return specOf(body);
  };
  EXPECT_EQ(without([](auto&) {}).kind, Kind::kDedicated);
  const JobSpec plain = without([](auto& b) { b["labels"].as_object().erase("hf-sandbox"); });
  EXPECT_EQ(plain.kind, Kind::kPlain);
  EXPECT_EQ(plain.env.size(), 6U) << "and all of its variables enter it";
  EXPECT_EQ(plain.server, engine::SandboxServer{});
  const auto kindWithout = [&](auto change) { return without(change).kind; };
  EXPECT_EQ(kindWithout([](auto& b) { b["labels"].as_object()["hf-sandbox"] = "0"; }),
            Kind::kPlain);
  EXPECT_EQ(kindWithout([](auto& b) { b["secrets"].as_object().erase("SBX_TOKEN"); }),
            Kind::kPlain);
  EXPECT_EQ(kindWithout([](auto& b) { b["secrets"].as_object()["SBX_TOKEN"] = ""; }), Kind::kPlain);
  EXPECT_EQ(kindWithout([](auto& b) { b["environment"].as_object().erase("SBX_SERVER_URL"); }),
            Kind::kPlain);
  EXPECT_EQ(kindWithout([](auto& b) { b["command"] = {"/bin/bash", "-c", "x"}; }), Kind::kPlain);
  EXPECT_EQ(kindWithout([](auto& b) { b["command"].as_array().emplace_back("x"); }), Kind::kPlain);
}

TEST(JobSpecTest, WhatIsLeftOutHasItsUsualValue) {
  const JobSpec spec = specOf(bodyWith("labels", ""));
  EXPECT_EQ(spec.flavor, "cpu-basic");
  EXPECT_EQ(spec.timeoutMs, 86'400'000);
  EXPECT_EQ(spec.attempts, 1U);
  EXPECT_EQ(spec.deadlineMs, 0);
  for (const char* name :
       {"arguments", "environment", "secrets", "flavor", "timeoutSeconds", "attempts", "labels",
        "volumes", "expose", "ssh", "network", "resourceGroupId", "spaceId"}) {
    EXPECT_EQ(specOf(bodyWith(name, "null")), spec) << name << ": null";
  }
}

TEST(JobSpecTest, ValuesOfVariablesBecomeTexts) {
  const JobSpec spec = specOf(bodyWith(
      "environment", R"({"a":"x","b":1,"c":-2.5,"d":false,"e":null,"f":{"k":[1,"é"]},"g":[]})"));
  EXPECT_THAT(spec.env,
              ElementsAre(Pair("a", "x"), Pair("b", "1"), Pair("c", "-2.5"), Pair("d", "false"),
                          Pair("e", ""), Pair("f", R"({"k":[1,"\u00e9"]})"), Pair("g", "[]")));
}

TEST(JobSpecTest, ArgumentsFollowTheCommand) {
  EXPECT_THAT(specOf(bodyWith("arguments", R"(["a","b"])")).command,
              ElementsAre("true", "-x", "a", "b"));
}

TEST(JobSpecTest, ALabelSaysHowLongItMayWait) {
  const json::Object body = bodyWith("labels", R"({"cay-deadline":"10m"})");
  EXPECT_EQ(specOf(body).deadlineMs, 1767225600000 + 600'000);
  auto row = rowOf(body);
  ASSERT_TRUE(row);
  row->labels = {{"cay-deadline", "nonsense"}};
  EXPECT_EQ(jobSpecOf(*row)->deadlineMs, 1767225600000 + 600'000)
      << "labels that are set later do not change it, nor break it";
}

TEST(JobSpecTest, OnlyBucketsCanBeWritten) {
  const JobSpec spec = specOf(bodyWith("volumes", R"([
    {"type":"bucket","source":"a/b","mountPath":"/b/"},
    {"type":"dataset","source":"a/b","mountPath":"/d","readOnly":false},
    {"type":"space","source":"a/b","mountPath":"/mnt/s","path":"x/y/","revision":"main"}])"));
  ASSERT_EQ(spec.volumes.size(), 3U);
  EXPECT_FALSE(spec.volumes[0].readOnly);
  EXPECT_EQ(spec.volumes[0].at, "/b");
  EXPECT_TRUE(spec.volumes[1].readOnly);
  EXPECT_TRUE(spec.volumes[2].readOnly);
  EXPECT_EQ(spec.volumes[2].path, "x/y");
}

TEST(JobSpecTest, PortsAreListedOnce) {
  const auto row = rowOf(bodyWith("expose", R"({"ports":[80,81,80],"portsPublic":[81,81]})"));
  ASSERT_TRUE(row);
  EXPECT_THAT(row->ports, ElementsAre(80, 81));
  EXPECT_THAT(row->publicPorts, ElementsAre(81));
}

struct Bad {
  const char* field;
  std::string value;
};

TEST(JobSpecTest, EveryBadFieldIsNamed) {
  const std::string long_(200'000, 'x');
  const std::string volume = R"([{"type":"bucket","source":"a/b","mountPath":")";
  const Bad cases[] = {
      {"command", ""},
      {"command", "[]"},
      {"command", "null"},
      {"command", R"("true")"},
      {"command", "[1]"},
      {"command", R"(["a\u0000b"])"},
      {"command", "[\"" + long_ + "\"]"},
      {"arguments", R"({"a":1})"},
      {"arguments", "[null]"},
      {"environment", "[]"},
      {"environment", R"({"":"x"})"},
      {"environment", R"({"A=B":"x"})"},
      {"environment", R"({"A\u0000":"x"})"},
      {"environment", R"({"A":"x\u0000y"})"},
      {"environment", R"({"A":")" + long_ + "\"}"},
      {"secrets", R"("x")"},
      {"secrets", R"({"A=":"x"})"},
      {"flavor", "1"},
      {"flavor", R"("")"},
      {"timeoutSeconds", "0"},
      {"timeoutSeconds", "-1"},
      {"timeoutSeconds", R"("24h")"},
      {"timeoutSeconds", "1e300"},
      {"attempts", "0"},
      {"attempts", "1.5"},
      {"attempts", "1000000"},
      {"attempts", "true"},
      {"labels", "[]"},
      {"labels", R"({"":"x"})"},
      {"labels", R"({"a b":"x"})"},
      {"labels", R"({"a":"x=y"})"},
      {"labels", R"({"a":{}})"},
      {"labels", R"({"a":")" + std::string(257, 'x') + "\"}"},
      {"labels", R"({"cay-deadline":"soon"})"},
      {"labels", R"({"cay-deadline":"0"})"},
      {"volumes", "{}"},
      {"volumes", "[1]"},
      {"volumes", R"([{"type":"folder","source":"a/b","mountPath":"/x"}])"},
      {"volumes", R"([{"source":"a/b","mountPath":"/x"}])"},
      {"volumes", R"([{"type":"bucket","source":"a","mountPath":"/x"}])"},
      {"volumes", R"([{"type":"bucket","source":"../b","mountPath":"/x"}])"},
      {"volumes", R"([{"type":"bucket","source":"a/..","mountPath":"/x"}])"},
      {"volumes", R"([{"type":"bucket","source":"a/b/c","mountPath":"/x"}])"},
      {"volumes", R"([{"type":"bucket","source":"a/b"}])"},
      {"volumes", volume + "x\"}]"},
      {"volumes", volume + "/\"}]"},
      {"volumes", volume + "/a/../b\"}]"},
      {"volumes", volume + "/a//b\"}]"},
      {"volumes", volume + "//\"}]"},
      {"volumes", volume + "/./a\"}]"},
      {"volumes", volume + "/proc\"}]"},
      {"volumes", volume + "/proc/self\"}]"},
      {"volumes", volume + "/dev/shm\"}]"},
      {"volumes", volume + "/sys\"}]"},
      {"volumes", volume + "/etc\"}]"},
      {"volumes", volume + "/etc/hosts\"}]"},
      {"volumes", volume + "/etc/resolv.conf/\"}]"},
      {"volumes", volume + R"(/x\u0000y"}])"},
      {"volumes", volume + R"(/x","path":"../y"}])"},
      {"volumes", volume + R"(/x","path":"/y"}])"},
      {"volumes", volume + R"(/x","revision":"../y"}])"},
      {"volumes", volume + R"(/x","revision":"refs/pr/1"}])"},
      {"volumes", volume + R"(/x","readOnly":"yes"}])"},
      {"volumes", R"([{"type":"bucket","source":"a/b","mountPath":"/x"},
                      {"type":"model","source":"a/c","mountPath":"/x/"}])"},
      {"expose", "[8000]"},
      {"expose", R"({"ports":8000})"},
      {"expose", R"({"ports":[0]})"},
      {"expose", R"({"ports":[65536]})"},
      {"expose", R"({"ports":["80"]})"},
      {"expose", R"({"ports":[80.5]})"},
      {"expose", R"({"ports":[80],"portsPublic":[81]})"},
      {"expose", R"({"portsPublic":[81]})"},
      {"ssh", "true"},
      {"ssh", R"({"enabled":true})"},
      {"ssh", R"({"enabled":1})"},
      {"network", R"("train")"},
      {"network", "{}"},
      {"network", R"({"group":""})"},
      {"network", R"({"group":"Train"})"},
      {"network", R"({"group":"a/b"})"},
      {"network", R"({"group":"-a"})"},
      {"network", R"({"group":"a","aliases":"b"})"},
      {"network", R"({"group":"a","aliases":["b","b"]})"},
      {"network", R"({"group":"a","aliases":["b.c"]})"},
      {"network", R"({"group":"a","aliases":["x\n127.0.0.1 y"]})"},
      {"network", R"({"group":")" + std::string(47, 'a') + "\"}"},
      {"network", R"({"group":"a","aliases":[")" + std::string(35, 'a') + "\"]}"},
      {"resourceGroupId", "1"},
      {"resourceGroupId", R"("a/b")"},
      {"dockerImage", ""},
      {"dockerImage", "1"},
      {"dockerImage", R"("")"},
      {"dockerImage", R"("a b")"},
      {"dockerImage", R"("space:a/b")"},
      {"dockerImage", "\"" + std::string(513, 'x') + "\""},
      {"spaceId", R"("a/b")"},  // and dockerImage is there too
  };
  for (const auto& [field, value] : cases) {
    const auto refused = parseJobWish(bodyWith(field, value));
    ASSERT_FALSE(refused) << field << ": " << value.substr(0, 100);
    EXPECT_EQ(refused.error().code, Code::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr("'" + std::string(field))) << value;
    EXPECT_LT(refused.error().message.size(), 600U);
  }
  json::Object space = bodyWith("dockerImage", "");
  space["spaceId"] = "../b";
  EXPECT_THAT(parseJobWish(space).error().message, HasSubstr("'spaceId'"));
}

TEST(JobSpecTest, SettingsOfSandboxesAreChecked) {
  const auto with = [](const char* name, const char* value) {
    json::Object body = recordedBody("2.4.0", "pool");
    body["environment"].as_object()[name] = value;
    return parseJobWish(body);
  };
  EXPECT_TRUE(with("SBX_IDLE_TIMEOUT", "0"));
  for (const auto& bad : {with("SBX_CAPACITY", "0"), with("SBX_CAPACITY", "many"),
                          with("SBX_CAPACITY", "1000000"), with("SBX_IDLE_TIMEOUT", "later")}) {
    ASSERT_FALSE(bad);
    EXPECT_THAT(bad.error().message, HasSubstr("'environment' has an SBX_"));
  }
  json::Object open = recordedBody("2.4.0", "sandbox");
  open["expose"].as_object()["portsPublic"].emplace_array().emplace_back(49983);
  EXPECT_THAT(parseJobWish(open).error().message, HasSubstr("'expose.portsPublic'"));
}

TEST(JobSpecTest, ABrokenRowIsAnError) {
  JobRow row = rowOf(recordedBody("2.4.0", "sandbox")).value();
  row.secrets = "{}";
  EXPECT_FALSE(jobSpecOf(row));
  row.spec = "[]";
  EXPECT_FALSE(jobSpecOf(row));
}

}  // namespace
}  // namespace cay::hub
