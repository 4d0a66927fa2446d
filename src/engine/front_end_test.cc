#include "engine/front_end.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "engine/child_process.h"
#include "sys/io.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using testing::eventually;
using ::testing::HasSubstr;

// Programs in place of cay-host.
class FrontEndTest : public ::testing::Test {
 protected:
  struct Ended {
    std::optional<host::End> end;
    std::string why;
  };

  std::string program(const std::string& script) {
    const std::string path = dir_.write("program", "#!/bin/sh\n" + script);
    fs::permissions(path, fs::perms{0700});
    return path;
  }
  std::shared_ptr<FrontEnd> make(const std::string& script) {
    FrontEnd::Plan plan{.program = program(script), .folder = folder(), .startup = {}};
    plan.startup.token = "secret";
    auto made = FrontEnd::make(loop_.io(), std::move(plan),
                               [this](std::optional<host::End> end, std::string why) {
                                 ended_ = Ended{.end = end, .why = std::move(why)};
                               });
    return made;
  }
  Result<> start(const std::shared_ptr<FrontEnd>& front) {
    return loop_.call([&] { return front->start(); });
  }
  bool serving(const std::shared_ptr<FrontEnd>& front, int64_t limitMs = 10'000) {
    return loop_.await(front->serving(Millis(limitMs)));
  }
  bool hasEnded() {
    return loop_.call([&] { return ended_.has_value(); });
  }
  // Its own record of how often it was started.
  size_t starts() {
    const auto text = sys::readFile((folder() + "/starts").c_str());
    return text ? static_cast<size_t>(std::ranges::count(*text, '\n')) : 0;
  }
  pid_t lastPid() {
    const auto text = sys::readFile((folder() + "/pid").c_str());
    return text ? std::atoi(text->c_str()) : 0;
  }
  [[nodiscard]] std::string folder() const { return fs::canonical(dir_.path()); }
  void TearDown() override {
    for (const auto& front : fronts_) loop_.await(front->stop());
  }
  std::shared_ptr<FrontEnd> begin(const std::string& script) {
    auto front =
        make("cd " + folder() + "; echo x >>starts; echo $$ >pid.new; mv pid.new pid\n" + script);
    const auto started = start(front);
    EXPECT_TRUE(started) << started.error().message;
    fronts_.push_back(front);
    return front;
  }

  testing::TempDir dir_;
  testing::LoopThread loop_;
  std::optional<Ended> ended_;
  std::vector<std::shared_ptr<FrontEnd>> fronts_;
};

constexpr char kServe[] = "echo ready >&5; exec 5>&-; exec sleep 1000\n";

TEST_F(FrontEndTest, ServesOnceItSaysSo) {
  const auto front = begin(kServe);
  EXPECT_TRUE(serving(front));
  EXPECT_EQ(starts(), 1U);
  EXPECT_TRUE(loop_.await(front->dial())) << "the socket is ours, so it can be dialled";
  const pid_t pid = lastPid();
  loop_.await(front->stop());
  EXPECT_TRUE(eventually([&] { return !fs::exists("/proc/" + std::to_string(pid)); }))
      << "dead at once, and no zombie for long";
  EXPECT_FALSE(hasEnded()) << "nobody is told of what was asked for";
}

TEST_F(FrontEndTest, NothingSecretIsInArgumentsOrEnvironment) {
  const auto front =
      begin("tr '\\0' ' ' </proc/$$/cmdline >cmdline; env >environment; cat <&3 >document;" +
            std::string(kServe));
  ASSERT_TRUE(serving(front));
  const auto read = [&](const char* name) {
    return sys::readFile((folder() + "/" + name).c_str()).value();
  };
  EXPECT_THAT(read("document"), HasSubstr("secret"));
  EXPECT_THAT(read("document"), HasSubstr("host.end"));
  EXPECT_THAT(read("cmdline"), ::testing::Not(HasSubstr("secret")));
  EXPECT_THAT(read("environment"), ::testing::Not(HasSubstr("secret")));
}

TEST_F(FrontEndTest, IsStartedAgainWhenItDies) {
  const auto front = begin(kServe);
  ASSERT_TRUE(serving(front));
  const pid_t first = lastPid();
  const int64_t killedAt = monotonicMs();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return starts() == 2 && lastPid() != first; }));
  EXPECT_LT(monotonicMs() - killedAt, 1000);
  EXPECT_FALSE(hasEnded());
  EXPECT_TRUE(loop_.await(front->dial()));
}

TEST_F(FrontEndTest, OneThatAlwaysDiesIsGivenUp) {
  const auto front = begin("echo 'no luck' >&2; exit 1\n");
  EXPECT_FALSE(serving(front, 30'000));
  ASSERT_TRUE(eventually([&] { return hasEnded(); }));
  EXPECT_FALSE(ended_->end);
  EXPECT_THAT(ended_->why, HasSubstr("no luck"));
  EXPECT_EQ(starts(), 11U);
}

TEST_F(FrontEndTest, OneThatDoesNotTakeItsSettingsIsNotAskedAgain) {
  const auto front = begin("echo 'wrong document' >&2; exit 2\n");
  EXPECT_FALSE(serving(front));
  EXPECT_THAT(ended_->why, HasSubstr("wrong document"));
  EXPECT_EQ(starts(), 1U);
}

TEST_F(FrontEndTest, OneThatNeverAnswersDoesNotServe) {
  const auto front = begin("exec sleep 1000\n");
  EXPECT_FALSE(serving(front, 300));
  EXPECT_FALSE(hasEnded());
}

TEST_F(FrontEndTest, AnEndNoteIsTheEnd) {
  const std::string note = host::endNoteText({.why = host::End::kIdle, .message = "idle for 1 s"});
  (void)dir_.write("note", note);
  const auto front = begin("echo ready >&5; cp note host.end; exit 0\n");
  ASSERT_TRUE(eventually([&] { return hasEnded(); }));
  EXPECT_EQ(ended_->end, host::End::kIdle);
  EXPECT_EQ(ended_->why, "idle for 1 s");
  EXPECT_EQ(starts(), 1U);
}

TEST_F(FrontEndTest, OneOfAnEarlierProcessIsTakenUp) {
  const auto front = begin(kServe);
  ASSERT_TRUE(serving(front));
  const pid_t pid = lastPid();
  loop_.call([&] { front->abandon(); });
  const auto later = make("cd " + folder() + "; echo x >>starts; echo $$ >pid;" + kServe);
  ASSERT_TRUE(loop_.call([&] { return later->adopt(); }));
  fronts_.push_back(later);
  EXPECT_TRUE(serving(later));
  EXPECT_EQ(starts(), 1U) << "it lives, so no other is started";
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(eventually([&] { return starts() == 2; })) << "from now on it is ours";
}

TEST_F(FrontEndTest, OneThatDiedMeanwhileIsStartedAgain) {
  const auto front = begin(kServe);
  ASSERT_TRUE(serving(front));
  loop_.call([&] { front->abandon(); });
  ASSERT_EQ(::kill(lastPid(), SIGKILL), 0);
  const auto later = make("cd " + folder() + "; echo x >>starts; echo $$ >pid;" + kServe);
  ASSERT_TRUE(loop_.call([&] { return later->adopt(); }));
  fronts_.push_back(later);
  EXPECT_TRUE(eventually([&] { return starts() == 2; }));
}

TEST_F(FrontEndTest, WhatAnEarlierProcessLeftCanBeKilled) {
  const auto front = begin(kServe);
  ASSERT_TRUE(serving(front));
  const pid_t pid = lastPid();
  loop_.call([&] { front->abandon(); });
  EXPECT_TRUE(FrontEnd::unmarked(fs::path(folder()).parent_path()).empty());
  fs::remove(folder() + "/host.mark");
  const auto unmarked = FrontEnd::unmarked(fs::path(folder()).parent_path());
  ASSERT_EQ(unmarked.size(), 1U) << "it was started by one who died before the mark";
  loop_.await(unmarked.front().kill());
  EXPECT_TRUE(eventually([&] { return ::kill(pid, 0) != 0; }));
}

TEST(ChildProcess, TellsWhyAProgramDoesNotStart) {
  const auto born = startChild(
      {.program = "/nowhere", .arguments = {}, .environment = {}, .descriptors = {}, .groups = {}});
  ASSERT_FALSE(born);
  EXPECT_THAT(born.error().message, HasSubstr("/nowhere"));
}

TEST(ChildProcess, GivesTheStatus) {
  testing::LoopThread loop;
  const auto run = [&](const char* script) {
    auto born = startChild({.program = "/bin/sh",
                            .arguments = {"-c", script},
                            .environment = {},
                            .descriptors = {-1, -1, -1},
                            .groups = {}});
    EXPECT_TRUE(born);
    return loop.await(childEnded(std::move(born->pidfd)));
  };
  EXPECT_EQ(run("exit 0"), 0);
  EXPECT_EQ(run("exit 3"), 3 << 8);
  EXPECT_EQ(run("kill -9 $$"), 9);
}

}  // namespace
}  // namespace cay::engine
