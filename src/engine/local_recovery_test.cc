// An engine that is killed at any time, and the next one that finds what it left.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>

#include "engine/child_process.h"
#include "engine/engine_process_fixture.h"
#include "engine/local_engine_fixture.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Contains;
using testing::eventually;
using ::testing::StartsWith;

class LocalRecovery : public LocalEngineTest {
 protected:
  // An engine in a process of its own, to which these jobs are given.
  class Other {
   public:
    Other(const LocalRecovery& test, const std::vector<JobSpec>& jobs) {
      const fs::path folder = test.dir_.path() / "asked";
      fs::remove_all(folder);
      fs::create_directories(folder);
      int number = 0;
      for (const JobSpec& spec : jobs) {
        std::ofstream(folder / std::to_string(number++)) << specText(spec);
      }
      auto pipe = sys::makePipe().value();
      auto born = startChild(
          {.program = fs::canonical("/proc/self/exe"),
           .arguments = {kEngineProcess, test.state(), test.dir_.path() / "leases", folder},
           .environment = {},
           .descriptors = {-1, pipe.write.get(), 2},
           .groups = {},
           .endsWithUs = false});
      EXPECT_TRUE(born) << born.error().message;
      pid_ = born->pid;
      pipe.write.reset();
      char word = 0;
      // It says one letter when it is open, and one for each job that it took.
      for (size_t i = 0; i < 1 && ::read(pipe.read.get(), &word, 1) == 1; ++i) continue;
      said_ = std::move(pipe.read);
    }
    ~Other() { kill(); }
    void awaitAccepted(size_t jobs) const {
      char word = 0;
      for (size_t i = 0; i < jobs; ++i) EXPECT_EQ(::read(said_.get(), &word, 1), 1);
    }
    void kill() {
      if (pid_ <= 0) return;
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      pid_ = -1;
    }

   private:
    pid_t pid_ = -1;
    Fd said_;
  };

  // After everything was ended in order.
  void expectNothingLeft(const std::string& word) {
    loop_->await(engine_->shutdown(Engine::Jobs::kEnd));
    EXPECT_TRUE(eventually([&] { return fs::is_empty(state() + "/sandboxes/sandboxes"); }));
    EXPECT_TRUE(eventually([&] { return fs::is_empty(state() + "/sandboxes/trash"); }));
    EXPECT_FALSE(fs::exists(state() + "/net.sock"));
    close();
    EXPECT_TRUE(eventually([&] { return !anyProcessWith(word); }));
    EXPECT_TRUE(eventually([&] { return !anyProcessWith(state()); }));
  }
  static bool anyProcessWith(const std::string& word) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto text = sys::readFile((entry.path() / "cmdline").c_str());
      if (text && text->contains(word) && entry.path() != "/proc/" + std::to_string(::getpid()) &&
          std::isdigit(entry.path().filename().string().front()) != 0) {
        return true;
      }
    }
    return false;
  }
  std::string word(const char* prefix) const {
    return std::string(prefix) + std::to_string(::getpid());
  }
};

TEST_F(LocalRecovery, ARunningCommandGoesOnAndNothingItSaysIsLost) {
  const JobSpec spec = job("echo before; sleep 2; echo after; exit 7");
  {
    Other other(*this, {spec});
    other.awaitAccepted(1);
    ASSERT_TRUE(eventually([&] {
      const auto state = JobFolder(this->state() + "/jobs/" + spec.id).state();
      return state && state->status.stage == Stage::kRunning;
    }));
    other.kill();
  }
  open({spec});
  EXPECT_EQ(stageName(told_.last(spec.id).stage), "RUNNING");
  const Status end = awaitEnd(spec.id);
  EXPECT_EQ(end.message, "Job failed with exit code: 7");
  EXPECT_THAT(lines(spec.id), ::testing::ElementsAre(StartsWith("====="), "before", "after"));
  expectNothingLeft(spec.id);
}

TEST_F(LocalRecovery, AnEndThatNobodySawIsFound) {
  const JobSpec spec = job("sleep 0.3; echo done");
  {
    Other other(*this, {spec});
    other.awaitAccepted(1);
    ASSERT_TRUE(eventually([&] {
      const auto state = JobFolder(this->state() + "/jobs/" + spec.id).state();
      return state && state->status.stage == Stage::kRunning;
    }));
    other.kill();
  }
  std::this_thread::sleep_for(Millis(1000));
  open({spec});
  EXPECT_EQ(stageName(awaitEnd(spec.id).stage), "COMPLETED") << status(spec.id).message;
  EXPECT_THAT(lines(spec.id), Contains("done"));
  expectNothingLeft(spec.id);
}

TEST_F(LocalRecovery, KilledAtAnyTimeNothingIsLostAndNothingIsLeft) {
  for (const int afterMs : {0, 3, 10, 20, 40, 80, 160}) {
    std::vector<JobSpec> jobs;
    for (int i = 0; i < 6; ++i) jobs.push_back(job("sleep 1." + word("4")));
    {
      Other other(*this, jobs);
      std::this_thread::sleep_for(Millis(afterMs));
      other.kill();
    }
    open(jobs);
    for (const JobSpec& spec : jobs) {
      (void)eventually([&] { return isTerminal(told_.last(spec.id).stage); });
      const Status end = told_.last(spec.id);
      if (end.stage == Stage::kCompleted) continue;
      EXPECT_EQ(stageName(end.stage), "ERROR") << "after " << afterMs << " ms";
      EXPECT_THAT(end.message, AnyOf("the hub was restarted while this job was being started",
                                     "the engine has no trace of this job"))
          << "after " << afterMs << " ms";
    }
    expectNothingLeft(word("4"));
  }
}

TEST_F(LocalRecovery, WhatTheHubDoesNotKnowIsRemoved) {
  const JobSpec spec = job("sleep 10" + word("5"));
  {
    Other other(*this, {spec});
    other.awaitAccepted(1);
    ASSERT_TRUE(eventually([&] { return anyProcessWith("10" + word("5")); }));
    other.kill();
  }
  EXPECT_TRUE(anyProcessWith("10" + word("5"))) << "it outlives the engine";
  open();
  EXPECT_TRUE(eventually([&] { return !anyProcessWith("10" + word("5")); }));
  EXPECT_FALSE(fs::exists(state() + "/jobs/" + spec.id));
  expectNothingLeft(word("5"));
}

TEST_F(LocalRecovery, WhatIsOverStaysWithItsLog) {
  open();
  const JobSpec spec = submit(job("echo kept"));
  awaitEnd(spec.id);
  loop_->await(engine_->shutdown(Engine::Jobs::kKeep));
  close();
  open();
  EXPECT_EQ(stageName(status(spec.id).stage), "COMPLETED");
  EXPECT_THAT(lines(spec.id), Contains("kept"));
  close();
  std::ofstream(state() + "/jobs/" + spec.id + "/state.json") << "broken";
  open();
  EXPECT_FALSE(fs::exists(state() + "/jobs/" + spec.id)) << "nobody could say what it was";
}

}  // namespace
}  // namespace cay::engine
