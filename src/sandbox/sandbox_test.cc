// The sandbox with a real keeper, which is this very test program started again.
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/clock.h"
#include "sandbox/keeper.h"
#include "sandbox/keeper_process.h"
#include "sandbox/line_log.h"
#include "sandbox/nursery.h"
#include "sys/io.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

constexpr int64_t kPatienceMs = 20'000;

using testing::eventually;

pid_t parentOf(pid_t pid) {
  const auto stat = sys::readFile(("/proc/" + std::to_string(pid) + "/stat").c_str()).value();
  return std::stoi(stat.substr(stat.rfind(')') + 4));
}

class SandboxTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { open(); }
  void TearDown() override {
    if (sandbox_ == nullptr) return;
    loop_->await(sandbox_->shutdown());
    loop_->call([&] { sandbox_.reset(); });
  }

  void open(LogShape shape = {}, uint64_t totalLogBytes = 512 << 20, size_t finished = 512) {
    loop_ = std::make_unique<testing::LoopThread>();
    state_ = {};
    auto state = StateFolder::open(dir_.path() / "state");
    ASSERT_TRUE(state) << state.error().message;
    state_ = std::move(*state);
    Sandbox::Options options;
    options.shape = shape;
    options.retention = {.logBytes = totalLogBytes, .execs = finished};
    const bool subreaper = std::string_view(GetParam()) == "subreaper";
    options.spawnKeeper = keeperSpawner(
        {.shape = shape, .cgroupName = state_.name, .noCgroups = subreaper ? "test" : ""},
        state_.execs.get());
    options.folder = {.base = state_.folder.get(), .prefix = ""};
    sandbox_ = std::make_unique<Sandbox>(loop_->io(), std::move(options));
    loop_->call([&] { sandbox_->recover(); });
    const auto prepared = loop_->await(sandbox_->prepare());
    ASSERT_TRUE(prepared) << prepared.error().message;
    ASSERT_TRUE(loop_->await(sandbox_->settled(Millis(kPatienceMs))));
  }

  // As if the host had been killed: the connection breaks, the keeper goes on.
  void loseHost() {
    loop_->call([&] { sandbox_.reset(); });
    loop_.reset();
  }

  static StartRequest request(std::string line, Kind kind = Kind::kExec) {
    StartRequest request;
    request.spec.kind = kind;
    request.spec.argv = {"/bin/sh", "-c", std::move(line)};
    request.spec.env = {"PATH=/usr/bin:/bin"};
    request.spec.cwd = "/";
    if (kind == Kind::kProcess) {
      request.spec.stdinMode = Stdin::kOpenPipe;
      request.spec.onDisconnect = OnDisconnect::kKeep;
      request.cmd = "\"x\"";
    }
    return request;
  }

  struct Outcome {
    std::string text[kStreams];
    std::vector<std::pair<uint64_t, uint64_t>> gaps;
    ExitRecord exit;
  };

  static net::Task<Outcome> readToEnd(Follower& follower) {
    Outcome out;
    while (true) {
      const auto piece = follower.next();
      if (!piece) throw std::runtime_error(piece.error().message);
      if (*piece) {
        if ((*piece)->data.empty()) {
          out.gaps.emplace_back((*piece)->from, (*piece)->to);
        } else {
          out.text[(*piece)->stream].append((*piece)->data);
        }
        continue;
      }
      if (follower.atExit()) break;
      if (!co_await follower.exec()->changed.wait(Millis(kPatienceMs))) {
        throw std::runtime_error("nothing came");
      }
    }
    out.exit = *follower.exec()->exit;
    co_return out;
  }

  static net::Task<Outcome> runTask(Sandbox& sandbox, StartRequest request) {
    auto started = co_await sandbox.start(std::move(request));
    if (!started) throw std::runtime_error(started.error().message);
    co_return co_await readToEnd(*started->follower);
  }

  Outcome run(StartRequest request) { return loop_->await(runTask(*sandbox_, std::move(request))); }

  ExecPtr spawn(StartRequest request) {
    auto started = loop_->await(sandbox_->start(std::move(request)));
    if (!started) throw std::runtime_error(started.error().message);
    return started->exec;
  }

  static net::Task<Outcome> readFrom(Sandbox& sandbox, ExecPtr exec, Offsets from) {
    Follower follower(sandbox, std::move(exec), from, /*listening=*/true);
    co_await follower.sync();
    co_return co_await readToEnd(follower);
  }

  Outcome read(ExecPtr exec, Offsets from = {}) {
    return loop_->await(readFrom(*sandbox_, std::move(exec), from));
  }

  testing::TempDir dir_;
  StateFolder state_;
  std::unique_ptr<testing::LoopThread> loop_;
  std::unique_ptr<Sandbox> sandbox_;
};

TEST_P(SandboxTest, OutputAndExitAreWhole) {
  EXPECT_EQ(sandbox_->treeMechanism(), GetParam());
  for (int i = 0; i < 100; ++i) {
    const Outcome out = run(request("echo hello; echo oops >&2; exit 3"));
    EXPECT_EQ(out.text[kStdout], "hello\n");
    EXPECT_EQ(out.text[kStderr], "oops\n");
    EXPECT_EQ(out.exit.exitCode, 3);
    EXPECT_EQ(out.exit.cause, Cause::kExited);
    EXPECT_EQ(out.exit.outputBytes[kStdout], 6U);
  }
}

TEST_P(SandboxTest, WhatItUsedIsTold) {
  const Usage usage = run(request("head -c 5000000 /dev/zero | wc -c; "
                                  "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
                          .exit.usage;
  EXPECT_GE(usage.readBytes, 10'000'000U) << "by head and by wc";
  EXPECT_GE(usage.writeBytes, 5'000'000U);
  EXPECT_GT(usage.userMs + usage.systemMs, 0U);
  EXPECT_GT(usage.maxRssBytes, 0U);
}

TEST_P(SandboxTest, MoreOutputThanTheLogHoldsReachesAReaderWhole) {
  TearDown();
  open({.headBytes = 8192, .ringBytes = 8192});
  const Outcome out = run(request("seq 1 200000"));
  std::string expected;
  for (int i = 1; i <= 200'000; ++i) expected.append(std::to_string(i)).append("\n");
  EXPECT_TRUE(out.gaps.empty());
  EXPECT_EQ(out.text[kStdout], expected);
}

TEST_P(SandboxTest, ALateReaderIsToldTheGap) {
  TearDown();
  open({.headBytes = 1000, .ringBytes = 1000});
  const ExecPtr exec = spawn(request("seq 1 20000", Kind::kProcess));
  ASSERT_TRUE(eventually([&] { return loop_->call([&] { return !exec->live; }); }));
  const Outcome out = read(exec);
  ASSERT_EQ(out.gaps.size(), 1U);
  EXPECT_EQ(out.gaps[0].first, 1000U);
  EXPECT_EQ(out.gaps[0].second, exec->totals.at[kStdout] - 1000);
  EXPECT_EQ(out.text[kStdout].size(), 2000U);
  EXPECT_TRUE(out.text[kStdout].ends_with("19999\n20000\n"));
}

TEST_P(SandboxTest, ATimeLimitEndsTheWholeTreeAndKeepsTheOutput) {
  StartRequest limited =
      request("echo part; (setsid sleep 1000 &) ; trap '' TERM; while :; do sleep 1; done");
  limited.spec.timeoutMs = 300;
  const Outcome out = run(std::move(limited));
  EXPECT_EQ(out.text[kStdout], "part\n");
  EXPECT_EQ(out.exit.cause, Cause::kTimedOut);
  EXPECT_TRUE(eventually([&] { return loop_->call([&] { return sandbox_->running(); }) == 0; }));
}

TEST_P(SandboxTest, AGrandchildThatHoldsThePipeDelaysNothingAndLosesNothing) {
  const std::string line = "(sleep 0.4; echo late; echo later) & echo early";
  const ExecPtr exec = loop_->await([](Sandbox& sandbox, StartRequest start) -> net::Task<ExecPtr> {
    auto started = co_await sandbox.start(std::move(start));
    const Outcome out = co_await readToEnd(*started->follower);
    EXPECT_EQ(out.text[kStdout], "early\n");
    co_return started->exec;
  }(*sandbox_, [&] {
                                      StartRequest keep = request(line);
                                      keep.spec.onDisconnect = OnDisconnect::kKeep;
                                      return keep;
                                    }()));
  ASSERT_TRUE(eventually([&] { return loop_->call([&] { return !exec->live; }); }));
  EXPECT_EQ(read(exec).text[kStdout], "early\nlate\nlater\n");
}

TEST_P(SandboxTest, AnExecThatNobodyListensToIsEnded) {
  const ExecPtr exec = spawn(request("sleep 1000"));  // its follower is dropped at once
  ASSERT_TRUE(eventually([&] { return loop_->call([&] { return exec->exit.has_value(); }); }));
  EXPECT_EQ(exec->exit->cause, Cause::kDisconnected);
}

TEST_P(SandboxTest, KillEndsAProcessAndIsRepeatable) {
  const ExecPtr exec = spawn(request("sleep 1000 & sleep 1000", Kind::kProcess));
  EXPECT_TRUE(loop_->await(sandbox_->kill(exec)));
  EXPECT_EQ(exec->exit->cause, Cause::kKilled);
  EXPECT_FALSE(loop_->await(sandbox_->kill(exec)));
}

TEST_P(SandboxTest, WhatACommandStartsToCleanUpIsNotAskedToEnd) {
  const std::string said = dir_.path() / "said";
  const auto says = [&](const char* what) {
    return eventually([&] { return sys::readFile(said.c_str()).value_or("") == what; });
  };
  for (const std::string_view own : {"", "setsid -w "}) {
    (void)::unlink(said.c_str());
    const std::string line = std::string(own) + R"(sh -c 'exec >> "$0"
        trap "while [ \$i -gt 0 ]; do /bin/true || echo harmed; i=\$((i-1)); done; echo whole; exit" TERM
        i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done
        sleep 0.2; echo up; wait' )";
    const ExecPtr exec = spawn(request(line + said, Kind::kProcess));
    ASSERT_TRUE(says("up\n"));
    EXPECT_TRUE(loop_->await(sandbox_->kill(exec)));
    EXPECT_TRUE(says("up\nwhole\n")) << own << sys::readFile(said.c_str()).value_or("");
  }
}

TEST_P(SandboxTest, TheSameKeyRunsOnce) {
  const std::string counter = dir_.path() / "count";
  const auto keyed = [&](std::string print) {
    StartRequest start = request("echo x >> " + counter + "; echo done");
    start.key = "k";
    start.fingerprint = std::move(print);
    start.spec.onDisconnect = OnDisconnect::kKeep;
    return start;
  };
  EXPECT_EQ(run(keyed("a")).text[kStdout], "done\n");
  EXPECT_EQ(run(keyed("a")).text[kStdout], "done\n");
  EXPECT_EQ(run(request("cat " + counter)).text[kStdout], "x\n");
  const auto other = loop_->await(sandbox_->start(keyed("b")));
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kUnprocessable);
}

TEST_P(SandboxTest, InputReachesAProcessUntilItIsClosed) {
  const ExecPtr exec = spawn(request("cat", Kind::kProcess));
  {
    const auto pipe = loop_->await(sandbox_->openStdin(exec));
    ASSERT_TRUE(pipe) << pipe.error().message;
    ASSERT_EQ(::write(pipe->get(), "abc", 3), 3);
  }
  loop_->call([&] { sandbox_->closeStdin(*exec); });
  const Outcome out = read(exec);
  EXPECT_EQ(out.text[kStdout], "abc");
  EXPECT_FALSE(loop_->await(sandbox_->openStdin(exec)));
}

TEST_P(SandboxTest, MuchInputIsFedWithoutBlockingAnything) {
  StartRequest feed = request("wc -c");
  feed.spec.stdinMode = Stdin::kData;
  feed.spec.stdinData = std::string(5 << 20, 'y');
  EXPECT_EQ(run(std::move(feed)).text[kStdout], "5242880\n");
}

TEST_P(SandboxTest, MuchInputAndLongCommandsLeaveNoTraceInThePeakMemoryOfOthers) {
  const uint64_t before = run(request("true")).exit.usage.maxRssBytes;
  StartRequest feed = request("wc -c");
  feed.spec.stdinMode = Stdin::kData;
  feed.spec.stdinData = std::string(30 << 20, 'y');
  EXPECT_EQ(run(std::move(feed)).text[kStdout], "31457280\n");
  StartRequest longOne = request("true");
  for (int i = 0; i < 15; ++i) longOne.spec.argv.emplace_back(100'000, 'a');
  EXPECT_EQ(run(std::move(longOne)).exit.exitCode, 0);
  EXPECT_LT(run(request("true")).exit.usage.maxRssBytes, before + (8U << 20));
}

TEST_P(SandboxTest, AFloodDoesNotKeepOthersWaiting) {
  const ExecPtr flood = spawn(request("yes", Kind::kProcess));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run(request("echo hi")).text[kStdout], "hi\n");
  EXPECT_TRUE(loop_->await(sandbox_->kill(flood)));
  EXPECT_GT(flood->exit->outputBytes[kStdout], 0U);
}

TEST_P(SandboxTest, ARestartedHostFindsEverythingAgain) {
  const ExecPtr before = spawn(request("echo one; sleep 0.3; echo two; exit 5", Kind::kProcess));
  const std::string id = before->id;
  const ExecPtr daemon = spawn(request("sleep 1000", Kind::kProcess));
  const std::string daemonId = daemon->id;
  loseHost();
  open();
  const ExecPtr after = loop_->call([&] { return sandbox_->find(id); });
  ASSERT_NE(after, nullptr);
  const Outcome out = read(after);
  EXPECT_EQ(out.text[kStdout], "one\ntwo\n");
  EXPECT_EQ(out.exit.exitCode, 5);
  const ExecPtr running = loop_->call([&] { return sandbox_->find(daemonId); });
  ASSERT_NE(running, nullptr);
  EXPECT_TRUE(loop_->call([&] { return running->live; }));
  EXPECT_TRUE(loop_->await(sandbox_->kill(running)));
}

TEST_P(SandboxTest, ALostKeeperIsToldAndReplaced) {
  const ExecPtr exec = spawn(request("sleep 1000", Kind::kProcess));
  // The keeper is the parent of the command, or of the minder that is its parent.
  pid_t keeper = parentOf(exec->pid);
  if (std::string_view(GetParam()) == "subreaper") keeper = parentOf(keeper);
  ASSERT_EQ(::kill(keeper, SIGKILL), 0);
  ASSERT_TRUE(eventually([&] { return loop_->call([&] { return exec->exit.has_value(); }); }));
  EXPECT_EQ(exec->exit->cause, Cause::kHostLost);
  EXPECT_EQ(run(request("echo again")).text[kStdout], "again\n");
  // What the dead keeper ran is not left behind.
  EXPECT_TRUE(eventually([&] {
    (void)::waitpid(exec->pid, nullptr, WNOHANG);  // in case this process has become its parent
    return ::kill(exec->pid, 0) != 0;
  }));
}

TEST_P(SandboxTest, OldRecordsMakeRoomForNewOnes) {
  TearDown();
  open({}, 512 << 20, /*finished=*/5);
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) {
    const ExecPtr exec =
        loop_->await([](Sandbox& sandbox, StartRequest start) -> net::Task<ExecPtr> {
          auto started = co_await sandbox.start(std::move(start));
          (void)co_await readToEnd(*started->follower);
          co_return started->exec;
        }(*sandbox_, request("echo hi")));
    ids.push_back(exec->id);
  }
  EXPECT_TRUE(
      eventually([&] { return loop_->call([&] { return sandbox_->find(ids[0]); }) == nullptr; }));
  EXPECT_NE(loop_->call([&] { return sandbox_->find(ids.back()); }), nullptr);
  const std::filesystem::directory_iterator files(dir_.path() / "state" / "execs");
  // Five that have ended, one that runs, and one whose end was not yet known when the last began.
  EXPECT_LE(std::distance(begin(files), end(files)), 7);
}

TEST_P(SandboxTest, TwoHostsCannotShareAStateFolder) {
  const auto second = StateFolder::open(dir_.path() / "state");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
}

StartRequest withLines(StartRequest request) {
  request.spec.lines = true;
  return request;
}

TEST_P(SandboxTest, TheLinesOfACommandAreWrittenWithoutAnyHost) {
  const auto written = [&] {
    std::vector<std::string> out;
    auto reader = LineLogReader::open(state_.execs.get(), kLinesFolder);
    while (reader) {
      const auto line = reader->next();
      if (!line || !*line) break;
      out.push_back(std::string((*line)->text) + ((*line)->continues ? "" : "$"));
    }
    return out;
  };
  const auto wait = [&](size_t count) {
    for (const int64_t until = monotonicMs() + kPatienceMs;
         written().size() < count && monotonicMs() < until;) {
      ::usleep(10'000);
    }
    return written();
  };
  using Lines = std::vector<std::string>;
  const ExecPtr exec = spawn(withLines(
      request("echo one; printf prompt; read x; echo; echo oops >&2; printf end", Kind::kProcess)));
  EXPECT_EQ(wait(2), (Lines{"one$", "prompt"})) << "a line that does not end is not held back";
  const auto second = loop_->await(sandbox_->start(withLines(request("true", Kind::kProcess))));
  EXPECT_FALSE(second) << "two would mix their lines";
  loop_->call([&] { sandbox_->closeStdin(*exec); });
  const std::string id = exec->id;
  loseHost();
  Lines lines = wait(5);
  EXPECT_EQ(std::erase(lines, "oops$"), 1U) << "at any place: two streams have no order";
  EXPECT_EQ(lines, (Lines{"one$", "prompt", "$", "end"}));
  open();
  EXPECT_TRUE(eventually([&] { return loop_->call([&] { return !sandbox_->find(id)->live; }); }));
  auto missing = withLines(request("", Kind::kProcess));
  missing.spec.argv = {"/no/such/command"};
  EXPECT_FALSE(loop_->await(sandbox_->start(std::move(missing))));
  EXPECT_TRUE(wait(6).back().contains("/no/such/command")) << "the log goes on";
}

INSTANTIATE_TEST_SUITE_P(Mechanisms, SandboxTest, ::testing::Values("cgroup", "subreaper"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace cay::sandbox

int main(int argc, char** argv) {
  if (auto options = cay::sandbox::keeperArguments({argv, argv + argc})) {
    return cay::sandbox::runKeeper(std::move(*options));
  }
  if (const auto settings = cay::sandbox::nurseryArguments({argv, argv + argc})) {
    return cay::sandbox::runNursery(*settings);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
