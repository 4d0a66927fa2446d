#include "engine/job_words.h"

#include <gmock/gmock.h>

namespace cay::engine {
namespace {

using sandbox::Cause;
using sandbox::ExitRecord;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

JobSpec specOf(Kind kind) {
  JobSpec spec;
  spec.id = "j1";
  spec.kind = kind;
  spec.env = {{"A", "env"}, {"B", "env"}, {"SBX_SERVER_URL", "x"}, {"JOB_ID", "false"}};
  spec.secrets = {{"B", "secret"}, {"SBX_TOKEN", "t"}};
  spec.resources = {.milliCpus = 1500, .memoryBytes = 1536ULL << 20};
  spec.timeoutMs = 300'000;
  spec.group = "ns/red";
  spec.groupName = "red";
  return spec;
}

TEST(JobEnvironment, TheStrongerSayWins) {
  const layers::ImageConfig image{
      .env = {"A=image", "C=image", "HOME=/other", "PATH=/opt/bin", "broken"}, .user = {}};
  const auto env = jobEnvironment(specOf(Kind::kPlain), image);
  for (const char* expected :
       {"A=env", "B=secret", "C=image", "HOME=/root", "PATH=/opt/bin", "JOB_ID=j1", "CPU_CORES=1.5",
        "MEMORY=1536Mi", "SBX_TOKEN=t", "HF_NETWORK_GROUP_PREFIX=red-"}) {
    EXPECT_THAT(env, Contains(expected));
  }
}

TEST(JobEnvironment, OfASandboxHasNothingOfItsServer) {
  const auto env = jobEnvironment(specOf(Kind::kDedicated), {});
  EXPECT_THAT(env, Not(Contains(StartsWith("SBX_"))));
  EXPECT_THAT(env, Contains(StartsWith("PATH=/usr/local/sbin:")));
}

TEST(JobEnvironment, WithGpusFindsTheDriver) {
  JobSpec spec = specOf(Kind::kPlain);
  EXPECT_THAT(jobEnvironment(spec, {}), Not(Contains(HasSubstr("nvidia"))));
  spec.resources.gpus = 1;
  EXPECT_THAT(jobEnvironment(spec, {}), Contains("LD_LIBRARY_PATH=/run/nvidia/lib64"));
  spec.env = {{"LD_LIBRARY_PATH", "/own"}, {"PATH", "/bin"}};
  EXPECT_THAT(jobEnvironment(spec, {}), Contains("LD_LIBRARY_PATH=/own:/run/nvidia/lib64"));
  EXPECT_THAT(jobEnvironment(spec, {}), Contains("PATH=/run/nvidia/bin:/bin"));
}

TEST(JobOutcome, IsToldInWords) {
  const JobSpec spec = specOf(Kind::kPlain);
  const auto outcome = [&](Cause cause, std::optional<int> code = {},
                           std::optional<int> signal = {}) {
    ExitRecord exit;
    exit.cause = cause;
    exit.exitCode = code;
    exit.signal = signal;
    return outcomeOf(spec, exit);
  };
  EXPECT_EQ(outcome(Cause::kExited, 0).stage, Stage::kCompleted);
  EXPECT_EQ(outcome(Cause::kExited, 3).stage, Stage::kError);
  EXPECT_EQ(outcome(Cause::kExited, 3).message, "Job failed with exit code: 3");
  EXPECT_EQ(outcome(Cause::kSignaled, {}, 9).message, "killed by signal 9");
  EXPECT_EQ(outcome(Cause::kTimedOut).message, "timed out after 300 s");
  EXPECT_EQ(outcome(Cause::kOom).message, "out of memory (limit 1.5 GiB)");
}

TEST(JobImage, AnAliasIsAlwaysVisible) {
  layers::Image image;
  image.name = "host";
  EXPECT_EQ(imageText(image, "host"), "host");
  image.alias = "docker.io/library/python:3.12";
  EXPECT_EQ(imageText(image, "python:3.12"), "host (alias of python:3.12)");
}

}  // namespace
}  // namespace cay::engine
