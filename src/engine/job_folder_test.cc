#include "engine/job_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;

JobSpec fullSpec() {
  JobSpec spec;
  spec.id = "abc1";
  spec.ns = "someone";
  spec.kind = Kind::kPool;
  spec.image = "python:3.12";
  spec.command = {"sh", "-c", "echo \"\xe2\x80\xa8\""};
  spec.env = {{"A", "1"}, {"A", "2"}};
  spec.secrets = {{"KEY", "hidden\n"}};
  spec.labels = {{"hf-sandbox", "1"}};
  spec.resources = {.milliCpus = 2000, .memoryBytes = 1ULL << 60, .pids = 512, .gpus = 1};
  spec.flavor = "cpu-basic";
  spec.timeoutMs = 300'000;
  spec.deadlineMs = 1'800'000'000'000;
  spec.attempts = 3;
  spec.group = "someone/red";
  spec.groupName = "red";
  spec.aliases = {"first"};
  spec.volumes = {{.type = VolumeRef::Type::kModel,
                   .source = "a/b",
                   .at = "/m",
                   .path = "sub",
                   .revision = "v1",
                   .readOnly = true}};
  spec.server = {.token = "t", .compatHostToken = true, .idleTimeoutMs = 5, .capacity = 7};
  return spec;
}

TEST(JobFolder, KeepsAllThatWasAskedForAndHowFarItCame) {
  const testing::TempDir dir;
  const JobState state{.number = 4,
                       .status = {.stage = Stage::kRunning,
                                  .message = "attempt 2 of 3",
                                  .serving = true,
                                  .startedAtMs = 12,
                                  .exitCode = 3,
                                  .attempt = 2,
                                  .image = "host",
                                  .notes = {"weaker"}},
                       .network = NetworkId{.epoch = 9, .number = 8},
                       .idBlock = 2,
                       .gpus = {0, 3}};
  const auto made = JobFolder::make(dir.path(), fullSpec(), state);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->id(), "abc1");
  EXPECT_EQ(made->spec().value(), fullSpec());
  EXPECT_EQ(made->state().value(), state);
  JobState later = state;
  later.network.reset();
  later.status.exitCode.reset();
  ASSERT_TRUE(made->save(later));
  EXPECT_EQ(made->state().value(), later);
}

TEST(JobFolder, IsForTheOwnersEyesAlone) {
  const testing::TempDir dir;
  ASSERT_TRUE(JobFolder::make(dir.path(), fullSpec(), {}));
  struct stat info{};
  ASSERT_EQ(::stat((dir.path() / "abc1/spec.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat((dir.path() / "abc1").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
}

TEST(JobFolder, ANameIsTakenOnce) {
  const testing::TempDir dir;
  ASSERT_TRUE(JobFolder::make(dir.path(), fullSpec(), {}));
  const auto again = JobFolder::make(dir.path(), fullSpec(), {});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kConflict);
}

TEST(JobFolder, WhatWasNotFinishedIsSwept) {
  const testing::TempDir dir;
  ASSERT_TRUE(JobFolder::make(dir.path(), fullSpec(), {}));
  fs::create_directories(dir.path() / "new.zzz/etc");
  const auto all = JobFolder::all(dir.path());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 1U);
  EXPECT_EQ(all->front().id(), "abc1");
  EXPECT_FALSE(fs::exists(dir.path() / "new.zzz"));
  ASSERT_TRUE(all->front().remove());
  ASSERT_TRUE(all->front().remove()) << "what is gone is gone";
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(JobFolder, ABrokenDocumentIsAnError) {
  for (const char* text : {"", "{}", "[]", "{\"id\":1}", R"({"number":1,"stage":"NOPE"})"}) {
    EXPECT_FALSE(parseSpec(text)) << text;
    EXPECT_FALSE(parseState(text)) << text;
  }
}

}  // namespace
}  // namespace cay::engine
