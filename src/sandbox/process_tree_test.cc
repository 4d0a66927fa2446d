#include "sandbox/process_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include "base/clock.h"
#include "base/ids.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

// What a keeper is to its commands, inside the test: a subreaper with all signals blocked.
class Trees : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    if (std::string_view(GetParam()) == "cgroup") {
      auto made = cgroupTrees(newId("cay"));
      if (!made) GTEST_SKIP() << "no control groups here: " << made.error().message;
      trees_ = std::move(*made);
    } else {
      trees_ = subreaperTrees();
    }
    null_ = Fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ::getrlimit(RLIMIT_NOFILE, &files_);
  }
  void TearDown() override {
    trees_.reset();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  Launched start(ProcessTree& tree, std::vector<std::string> argv, std::string cwd = "/") {
    ExecSpec spec;
    spec.argv = std::move(argv);
    spec.cwd = std::move(cwd);
    spec.env = {"PATH=/usr/bin:/bin"};
    auto pipe = sys::makePipe().value();
    output_ = std::move(pipe.read);
    return tree.start({.spec = spec,
                       .stdio = {null_.get(), pipe.write.get(), null_.get()},
                       .intoCgroup = -1,
                       .openFiles = files_});
  }

  // Reaps and handles events until the tree is empty.
  static bool emptyWithin(ProcessTree& tree, int64_t ms) {
    const int64_t until = monotonicMs() + ms;
    while (monotonicMs() < until) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (tree.empty()) return true;
      pollfd event{tree.eventFd(), POLLIN | POLLPRI, 0};
      (void)::poll(&event, 1, 20);
      (void)tree.onEvent();
    }
    return false;
  }

  std::string readLine() {
    std::string line;
    char c = 0;
    while (::read(output_.get(), &c, 1) == 1 && c != '\n') line.push_back(c);
    return line;
  }

  sigset_t before_{};
  std::unique_ptr<ProcessTrees> trees_;
  Fd null_;
  Fd output_;
  rlimit files_{};
};

TEST_P(Trees, KillReachesWhatHidInANewSessionOrForkedTwice) {
  auto tree = trees_->make().value();
  const auto born = start(*tree, {"/bin/sh", "-c",
                                  "setsid sleep 1000 & (sleep 1000 & sleep 1000 &) ; "
                                  "(setsid sh -c 'sleep 1000 & echo ready; wait' &) ; sleep 1000"});
  ASSERT_TRUE(born) << born.error().message;
  EXPECT_EQ(readLine(), "ready");
  EXPECT_FALSE(tree->empty());
  tree->kill();
  EXPECT_TRUE(emptyWithin(*tree, 10'000));
}

TEST_P(Trees, SignalsReachEveryProcessThatHasLeftTheGroup) {
  auto tree = trees_->make().value();
  const auto born = start(
      *tree,
      {"/bin/sh", "-c", "(setsid sleep 1000 &) ; (setsid sleep 1000 &) ; echo ready; sleep 1000"});
  ASSERT_TRUE(born);
  EXPECT_EQ(readLine(), "ready");
  ASSERT_EQ(::kill(-born->pid, SIGTERM), 0);
  tree->signalOutside(born->pid, SIGTERM);
  EXPECT_TRUE(emptyWithin(*tree, 10'000));
}

TEST_P(Trees, ABombThatGoesOnForkingIsKilled) {
  auto tree = trees_->make().value();
  const auto born =
      start(*tree,
            {"/bin/sh", "-c", "echo ready; while :; do (setsid sleep 1000 &) ; sleep 0.001; done"});
  ASSERT_TRUE(born);
  EXPECT_EQ(readLine(), "ready");
  tree->kill();
  EXPECT_TRUE(emptyWithin(*tree, 20'000));
}

TEST_P(Trees, StartFailuresSayWhoseFaultItIs) {
  const auto failure = [&](std::vector<std::string> argv, std::string cwd = "/") {
    auto tree = trees_->make().value();
    const auto born = start(*tree, std::move(argv), std::move(cwd));
    EXPECT_FALSE(born);
    return born ? StartFailure{} : born.error();
  };
  const StartFailure missing = failure({"no-such-program"});
  EXPECT_EQ(missing.fault, StartFault::kCommand);
  EXPECT_EQ(missing.exitCode, 127);
  EXPECT_EQ(missing.message, "'no-such-program': command not found");
  EXPECT_EQ(failure({"/etc/passwd"}).exitCode, 126);
  EXPECT_EQ(failure({"/"}).exitCode, 126);
  EXPECT_EQ(failure({"true", std::string(1 << 20, 'x')}).message, "'true': argument list too long");
  const StartFailure folder = failure({"true"}, "/no/such/folder");
  EXPECT_EQ(folder.fault, StartFault::kRequest);
  EXPECT_NE(folder.message.find("'/no/such/folder'"), std::string::npos);
}

TEST_P(Trees, ATreeIsUsableAgainAfterMany) {
  for (int i = 0; i < 50; ++i) {
    auto tree = trees_->make().value();
    const auto born = start(*tree, {"echo", "hi"});
    ASSERT_TRUE(born) << born.error().message;
    EXPECT_EQ(readLine(), "hi");
    if (i % 3 == 0) tree->kill();
    EXPECT_TRUE(emptyWithin(*tree, 10'000));
  }
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, Trees, ::testing::Values("cgroup", "subreaper"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cay::sandbox
