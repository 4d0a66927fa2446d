#include "hub/run_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RunFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return paths_.state + "/run.json"; }
  json::Object written() const {
    return json::parse(sys::readFile(file().c_str()).value()).value().as_object();
  }
  void rewrite(const json::Object& object) const {
    std::ofstream(file()) << json::serialize(object);
  }

  cay::testing::TempDir temp_;
  const Paths paths_{(temp_.path() / "deep/state").string()};
  const RunInfo info_{
      .api = "http://127.0.0.1:1", .tlsPort = 2, .domain = "a.example", .ownCertificate = true};
};

TEST_F(RunFileTest, SaysWhereTheHubIs) {
  EXPECT_FALSE(readRunFile(paths_));
  const auto run = RunFile::claim(paths_);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_FALSE(readRunFile(paths_));
  ASSERT_TRUE(run->write(info_));
  const auto last = readRunFile(paths_);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->info, info_);
  EXPECT_EQ(last->pid, ::getpid());
  EXPECT_TRUE(last->runs);
  struct stat stat{};
  ASSERT_EQ(::stat(file().c_str(), &stat), 0);
  EXPECT_EQ(stat.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(paths_.state.c_str(), &stat), 0);
  EXPECT_EQ(stat.st_mode & 0777U, 0700U);
}

TEST_F(RunFileTest, AnotherProcessOfTheSameNumberIsNotTheHub) {
  ASSERT_TRUE(RunFile::claim(paths_)->write(info_));
  json::Object other = written();
  other["born"] = other["born"].to_number<uint64_t>() + 1;
  rewrite(other);
  EXPECT_FALSE(readRunFile(paths_)->runs);
  other = written();
  other["born"] = other["born"].to_number<uint64_t>() - 1;
  rewrite(other);
  EXPECT_TRUE(readRunFile(paths_)->runs);
  other["boot"] = "another";
  rewrite(other);
  EXPECT_FALSE(readRunFile(paths_)->runs);
}

TEST_F(RunFileTest, WhatAnEndedHubSaidStays) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto run = RunFile::claim(paths_);
    ::_exit(run && run->write(info_) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto last = readRunFile(paths_);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->info, info_);
  EXPECT_EQ(last->pid, child);
  EXPECT_FALSE(last->runs);
  EXPECT_TRUE(RunFile::claim(paths_));
}

TEST_F(RunFileTest, NonsenseIsNothing) {
  ASSERT_TRUE(RunFile::claim(paths_)->write(info_));
  const json::Object good = written();
  for (const auto& [name, value] : good) {
    json::Object bad = good;
    bad.erase(name);
    rewrite(bad);
    EXPECT_FALSE(readRunFile(paths_)) << name;
    bad[name] = json::Array{};
    rewrite(bad);
    EXPECT_FALSE(readRunFile(paths_)) << name;
  }
  for (const char* pid : {"-1", "0", "99999999999"}) {
    json::Object bad = good;
    bad["pid"] = json::parse(pid).value();
    rewrite(bad);
    EXPECT_FALSE(readRunFile(paths_)) << pid;
  }
  std::ofstream(file()) << "{";
  EXPECT_FALSE(readRunFile(paths_));
}

TEST_F(RunFileTest, AStateHasOneHub) {
  auto first = RunFile::claim(paths_);
  ASSERT_TRUE(first);
  const std::string name = first->name();
  const auto second = RunFile::claim(paths_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr("process " + std::to_string(::getpid())), HasSubstr("--state")));
  first = fail(Code::kClosed, "given up");
  const auto third = RunFile::claim(paths_);
  ASSERT_TRUE(third);
  EXPECT_EQ(third->name(), name);
}

}  // namespace
}  // namespace cay::hub
