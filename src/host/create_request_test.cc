#include "host/create_request.h"

#include <gtest/gtest.h>

namespace cay::host {
namespace {

using isolation::Mode;
using isolation::Network;
using sandbox::PathRule;
using sandbox::PoolSpec;

constexpr uint64_t kMiB = 1 << 20;
const isolation::Limits kLimits{.memoryBytes = 512 * kMiB, .pids = 100};

Result<ParsedCreate> parse(std::string_view body, Mode mode = Mode::kFull,
                           std::string_view key = "") {
  return parseCreate(body, key, {.mode = mode, .limits = kLimits, .whyNoDisks = {}});
}
PoolSpec specOf(std::string_view body) {
  const auto parsed = parse(body);
  EXPECT_TRUE(parsed) << body << ": " << parsed.error().message;
  return parsed ? parsed->request.spec : PoolSpec();
}
std::string errorOf(std::string_view body) {
  const auto parsed = parse(body);
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code, Code::kInvalid) << body;
  return parsed.error().message;
}

TEST(CreateRequest, NothingIsAskedForByAnEmptyBody) {
  for (const char* body : {"", "  ", "{}", R"({"count":null,"env":null,"idle_timeout_secs":null,
           "ttl_secs":null,"memory_mb":null,"max_mem_mb":null,"pids":null,"max_procs":null,
           "cpus":null,"disk_mb":null,"network":null,"image":null,"paths":null,"labels":null})"}) {
    const auto parsed = parse(body);
    ASSERT_TRUE(parsed) << body;
    EXPECT_EQ(parsed->request.count, 1U);
    PoolSpec usual;
    usual.limits = kLimits;
    EXPECT_EQ(parsed->request.spec, usual);
    EXPECT_TRUE(parsed->ignored.empty());
    EXPECT_TRUE(parsed->request.key.empty());
  }
}

TEST(CreateRequest, EveryOptionIsTaken) {
  const auto parsed = parse(R"({"count":3,"env":{"A":1,"B":"x"},"idle_timeout_secs":1.5,
      "ttl_secs":60,"memory_mb":64,"pids":20,"cpus":0.5,"disk_mb":32,"network":"none",
      "image":"debian","paths":"root","labels":{"job":"a","n":7}})");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->request.count, 3U);
  const PoolSpec& spec = parsed->request.spec;
  EXPECT_EQ(spec.env, (std::vector<std::string>{"A=1", "B=x"}));
  EXPECT_EQ(spec.idleTimeoutMs, 1500);
  EXPECT_EQ(spec.ttlMs, 60'000);
  EXPECT_EQ(spec.limits,
            (isolation::Limits{
                .memoryBytes = 64 * kMiB, .pids = 20, .milliCpus = 500, .diskBytes = 32 * kMiB}));
  EXPECT_EQ(spec.network, Network::kNone);
  EXPECT_EQ(spec.image, "debian");
  EXPECT_EQ(spec.paths, PathRule::kRoot);
  EXPECT_EQ(spec.labels,
            (std::vector<std::pair<std::string, std::string>>{{"job", "a"}, {"n", "7"}}));
  EXPECT_TRUE(parsed->ignored.empty());
}

TEST(CreateRequest, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> bad[] = {
      {R"([1])", "JSON object"},
      {R"({"count":)", "line 1"},
      {R"({"count":0})", "'count' must be a whole number from 1 to 10000, not 0"},
      {R"({"count":1.5})", "'count'"},
      {R"({"count":"2"})", "'count'"},
      {R"({"count":10001})", "'count'"},
      {R"({"env":[]})", "'env'"},
      {R"({"env":{"A=B":"x"}})", "'env'"},
      {R"({"idle_timeout_secs":-1})", "'idle_timeout_secs'"},
      {R"({"idle_timeout_secs":"1"})", "'idle_timeout_secs'"},
      {R"({"ttl_secs":1e300})", "'ttl_secs'"},
      {R"({"memory_mb":-1})", "'memory_mb'"},
      {R"({"memory_mb":1.5})", "'memory_mb'"},
      {R"({"max_mem_mb":true})",
       "'max_mem_mb' must be a whole number from 0 to 1073741824, not true"},
      {R"({"pids":4194305})", "'pids'"},
      {R"({"max_procs":-2})", "'max_procs'"},
      {R"({"cpus":"two"})", "'cpus'"},
      {R"({"cpus":4097})", "'cpus'"},
      {R"({"disk_mb":[]})", "'disk_mb'"},
      {R"({"disk_mb":15})", "'disk_mb' must be 0 or at least 16, not 15"},
      {R"({"network":"bridge"})", R"('network' must be "host" or "none", not "bridge")"},
      {R"({"network":1})", "'network'"},
      {R"({"paths":"elsewhere"})", R"('paths' must be "home" or "root")"},
      {R"({"image":5})", "'image'"},
      {R"({"image":"a\u0000"})", "'image'"},
      {R"({"labels":[]})", "'labels'"},
      {R"({"labels":{"a":[]}})", "'labels'"},
      {R"({"labels":{"a":null}})", "'labels'"},
      {R"({"labels":{"":"x"}})", "'labels'"},
      {R"({"memory_mb":64,"max_mem_mb":65})", "'memory_mb' and 'max_mem_mb'"},
      {R"({"pids":1,"max_procs":2})", "'pids' and 'max_procs'"},
  };
  for (const auto& [body, part] : bad) {
    EXPECT_TRUE(errorOf(body).contains(part)) << body << " -> " << errorOf(body);
  }
}

TEST(CreateRequest, WhatIsTooMuchIsRefused) {
  const std::string big(128 << 10, 'x');
  EXPECT_TRUE(errorOf(R"({"env":{"A":")" + big + R"("}})").contains("'env'"));
  EXPECT_TRUE(
      errorOf(R"({"labels":{"a":")" + std::string(1024, 'x') + R"("}})").contains("'labels'"));
  std::string many = R"({"labels":{)";
  for (int i = 0; i < 65; ++i) {
    many.append(i == 0 ? "" : ",").append("\"l" + std::to_string(i) + "\":1");
  }
  const std::string error = errorOf(many + "}}");
  EXPECT_TRUE(error.contains("'labels'")) << error;
  EXPECT_LT(error.size(), 300U) << "a long value is not repeated whole";
}

TEST(CreateRequest, UpstreamsNamesMeanTheSame) {
  EXPECT_EQ(specOf(R"({"max_mem_mb":64,"max_procs":20})"), specOf(R"({"memory_mb":64,"pids":20})"));
  EXPECT_EQ(specOf(R"({"memory_mb":64,"max_mem_mb":64})").limits.memoryBytes, 64 * kMiB);
}

TEST(CreateRequest, ZeroIsNoLimitAndNever) {
  const PoolSpec spec =
      specOf(R"({"memory_mb":0,"pids":0,"cpus":0,"disk_mb":0,"idle_timeout_secs":0,"ttl_secs":0})");
  EXPECT_EQ(spec.limits, isolation::Limits());
  EXPECT_EQ(spec.idleTimeoutMs, 0);
  EXPECT_EQ(spec.ttlMs, 0);
  // And something tiny is not taken for it.
  const PoolSpec tiny = specOf(R"({"cpus":0.0001,"idle_timeout_secs":0.0001})");
  EXPECT_EQ(tiny.limits.milliCpus, 1U);
  EXPECT_EQ(tiny.idleTimeoutMs, 1);
}

TEST(CreateRequest, UnknownOptionsAreIgnoredAndNamed) {
  const auto parsed = parse(R"({"gpu":"a100","count":1,"colour":null})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->ignored, (std::vector<std::string>{"gpu", "colour"}));
}

TEST(CreateRequest, WithoutNamespacesSomeThingsCannotBeHad) {
  const auto codeOf = [](std::string_view body, Mode mode) {
    const auto parsed = parse(body, mode);
    return parsed ? std::optional<Code>() : parsed.error().code;
  };
  for (const Mode mode : {Mode::kFull, Mode::kUnprivileged}) {
    EXPECT_FALSE(codeOf(R"({"paths":"root","network":"none"})", mode));
  }
  EXPECT_EQ(codeOf(R"({"paths":"root"})", Mode::kRestricted), Code::kInvalid);
  EXPECT_EQ(codeOf(R"({"network":"none"})", Mode::kRestricted), Code::kExhausted);
  EXPECT_FALSE(codeOf(R"({"paths":"home","network":"host","disk_mb":0})", Mode::kRestricted));
}

TEST(CreateRequest, ALimitedDiskCannotBeHadEverywhere) {
  const CreateDefaults without{.mode = Mode::kFull, .limits = {}, .whyNoDisks = "no loop devices"};
  const auto refused = parseCreate(R"({"disk_mb":64})", "", without);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_TRUE(refused.error().message.contains("'disk_mb'"));
  EXPECT_TRUE(refused.error().message.contains("no loop devices"));
  EXPECT_TRUE(parseCreate(R"({"disk_mb":0})", "", without));
}

TEST(CreateRequest, AKeyBelongsToOneBody) {
  const auto print = [](std::string_view body) {
    return parse(body, Mode::kFull, "k")->request.fingerprint;
  };
  EXPECT_EQ(parse("{}", Mode::kFull, "k")->request.key, "k");
  EXPECT_EQ(print("{}"), print("{}"));
  EXPECT_NE(print("{}"), print(R"({"count":2})"));
}

TEST(CreateRequest, WhatEverySandboxHasARequestAddsTo) {
  const CreateDefaults defaults{.env = {"A=1", "B=2", "C=3"},
                                .binds = {{.source = "/v", .at = "/data"}},
                                .devices = {"/dev/nvidia0"}};
  const auto parsed = parseCreate(R"({"env":{"B":"own","C":null,"D":4}})", "", defaults);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->request.spec.env, (std::vector<std::string>{"A=1", "B=own", "D=4"}));
  EXPECT_EQ(parsed->request.spec.binds, defaults.binds);
  EXPECT_EQ(parsed->request.spec.devices, defaults.devices);
  const auto greedy =
      parseCreate(R"({"binds":[{"source":"/","at":"/x"}],"devices":["/dev/sda"]})", "", {});
  ASSERT_TRUE(greedy);
  EXPECT_TRUE(greedy->request.spec.binds.empty()) << "no request mounts anything";
  EXPECT_TRUE(greedy->request.spec.devices.empty()) << "and none has devices";
}

TEST(CreateRequest, DefaultsLeaveTheMachineHalfOfItsMemory) {
  EXPECT_EQ(defaultLimits(1024 * kMiB).memoryBytes, 512 * kMiB);
  EXPECT_EQ(defaultLimits(1024 * 1024 * kMiB).memoryBytes, 2048 * kMiB);
  EXPECT_EQ(defaultLimits(1024 * kMiB).pids, 1024U);
  EXPECT_EQ(defaultLimits(1024 * kMiB).diskBytes, 0U);
}

}  // namespace
}  // namespace cay::host
