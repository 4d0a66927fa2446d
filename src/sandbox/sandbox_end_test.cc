// Sandboxes whose keeper cannot be had, and the end of one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <fstream>
#include <future>
#include <thread>

#include "base/clock.h"
#include "sandbox/keeper_process.h"
#include "sandbox/sandbox.h"
#include "sys/io.h"
#include "sys/packet.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

class SandboxEndTest : public ::testing::Test {
 protected:
  void SetUp() override { open("state"); }
  void TearDown() override { end(); }

  void open(const std::string& folder) {
    state_ = StateFolder::open(dir_.path() / folder).value();
    Sandbox::Options options;
    options.folder = {.base = state_.folder.get(), .prefix = ""};
    options.spawnKeeper = [this](Fd listener) {
      ++spawns_;
      return spawn_ ? spawn_(std::move(listener))
                    : keeperSpawner({.shape = {}, .cgroupName = "", .noCgroups = "test"},
                                    state_.execs.get())(std::move(listener));
    };
    sandbox_ = std::make_unique<Sandbox>(loop_.io(), std::move(options));
  }
  void end() {
    loop_.await(sandbox_->destroy("the test is over"));
    loop_.call([&] { sandbox_.reset(); });
  }

  static StartRequest request(Kind kind = Kind::kExec) {
    StartRequest request;
    request.spec.kind = kind;
    request.spec.argv = {"/bin/sleep", "1000"};
    request.spec.cwd = "/";
    request.spec.onDisconnect = OnDisconnect::kKeep;
    request.cmd = "\"x\"";
    return request;
  }
  Result<Sandbox::Started> start(Kind kind = Kind::kExec) {
    return loop_.await(sandbox_->start(request(kind)));
  }
  // A keeper that says `first`, if that is anything, and dies.
  static KeeperLink::Spawner dyingKeeper(const std::string& first) {
    return [first](const Fd& listener) -> Result<> {
      const Fd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!first.empty()) EXPECT_TRUE(sys::sendPacket(peer.get(), first));
      return {};
    };
  }
  static std::string refusal(std::string_view why) {
    return Writer().put(Message::kRefused).put(why).bytes();
  }

  testing::TempDir dir_;
  StateFolder state_;
  testing::LoopThread loop_;
  KeeperLink::Spawner spawn_;  // none: a real keeper
  int spawns_ = 0;
  std::unique_ptr<Sandbox> sandbox_;
};

TEST_F(SandboxEndTest, WallsThatCannotBeRaisedAreAShortageWithTheReason) {
  spawn_ = dyingKeeper(refusal("no seccomp today"));
  for (const Kind kind : {Kind::kExec, Kind::kProcess}) {
    const auto started = start(kind);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, Code::kExhausted);
    EXPECT_EQ(started.error().message, "no seccomp today");
  }
  const auto root = loop_.await(sandbox_->root());
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().code, Code::kExhausted);
  EXPECT_EQ(root.error().message, "no seccomp today");
  EXPECT_EQ(loop_.call([&] { return sandbox_->running(); }), 0U);
  EXPECT_TRUE(loop_.call([&] { return sandbox_->processes(); }).empty()) << "nothing has run";
}

TEST_F(SandboxEndTest, ARefusalIsNotForEver) {
  spawn_ = dyingKeeper(refusal("no memory"));
  EXPECT_FALSE(start());
  spawn_ = nullptr;
  const auto started = start();
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(spawns_, 2);
}

TEST_F(SandboxEndTest, AKeeperThatDiesSilentlyIsAShortageToo) {
  spawn_ = dyingKeeper("");
  const auto started = start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kExhausted);
}

TEST_F(SandboxEndTest, AKeeperThatCannotBeStartedIsTheErrorItself) {
  spawn_ = [](const Fd&) -> Result<> { return fail(Code::kExhausted, "no processes left"); };
  const auto started = start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "no processes left");
  EXPECT_FALSE(loop_.call([&] { return sandbox_->hasKeeper(); }));
}

TEST_F(SandboxEndTest, DestroyKillsWhatRunsAndRefusesWhatComes) {
  const auto started = start(Kind::kProcess);
  ASSERT_TRUE(started) << started.error().message;
  const ExecPtr exec = started->exec;
  const pid_t pid = loop_.call([&] { return exec->pid; });
  loop_.await(sandbox_->destroy("it was deleted"));
  EXPECT_FALSE(loop_.call([&] { return sandbox_->hasKeeper(); }));
  EXPECT_EQ(loop_.call([&] { return exec->exit->cause; }), Cause::kKilled);
  EXPECT_EQ(loop_.call([&] { return sandbox_->running(); }), 0U);
  for (int i = 0; i < 2; ++i) {
    const auto late = start();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kGone);
    EXPECT_EQ(late.error().message, "it was deleted");
    const auto root = loop_.await(sandbox_->root());
    ASSERT_FALSE(root);
    EXPECT_EQ(root.error().code, Code::kGone);
  }
  EXPECT_EQ(spawns_, 1) << "no keeper comes back";
  ::kill(pid, SIGKILL);  // without a pid namespace it outlives its keeper
}

TEST_F(SandboxEndTest, DestroyNeedsNoKeeper) {
  loop_.await(sandbox_->destroy("gone"));
  EXPECT_EQ(spawns_, 0);
  EXPECT_EQ(start().error().code, Code::kGone);
}

// The front end that the keeper was given to, and the maker again, after a restart.
class HandOverTest : public SandboxEndTest {
 protected:
  std::unique_ptr<Sandbox> another(bool keeperIsGiven) {
    Sandbox::Options options;
    options.folder = {.base = state_.folder.get(), .prefix = ""};
    options.keeperIsGiven = keeperIsGiven;
    options.spawnKeeper = [this](const Fd&) -> Result<> {
      ++spawns_;
      return fail(Code::kInternal, "nobody should ask for that");
    };
    auto made = std::make_unique<Sandbox>(loop_.io(), std::move(options));
    loop_.call([&] { made->recover(); });
    EXPECT_TRUE(loop_.await(made->settled(Millis(20'000))));
    return made;
  }
  void drop(std::unique_ptr<Sandbox>& sandbox) {
    loop_.call([&] { sandbox.reset(); });
  }
};

TEST_F(HandOverTest, AKeeperThatWasGivenAwayServesTheOther) {
  const auto mark = loop_.await(sandbox_->handOver());
  ASSERT_TRUE(mark) << mark.error().message;
  EXPECT_FALSE(loop_.call([&] { return sandbox_->hasKeeper(); }));
  EXPECT_EQ(start().error().code, Code::kConflict) << "it is not ours to use any more";
  EXPECT_EQ(loop_.await(sandbox_->root()).error().code, Code::kConflict);
  EXPECT_EQ(loop_.await(sandbox_->handOver()).error().code, Code::kConflict);

  auto front = another(/*keeperIsGiven=*/true);
  ASSERT_TRUE(loop_.call([&] { return front->hasKeeper(); }));
  const auto started = loop_.await(front->start(request(Kind::kProcess)));
  ASSERT_TRUE(started) << started.error().message;

  // The maker comes again, and the front end, which was killed in between.
  auto maker = another(/*keeperIsGiven=*/false);
  EXPECT_FALSE(loop_.call([&] { return maker->hasKeeper(); }));
  EXPECT_TRUE(loop_.call([&] { return front->hasKeeper(); })) << "it was not pushed aside";
  drop(front);
  front = another(/*keeperIsGiven=*/true);
  const auto processes = loop_.call([&] { return front->processes(); });
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_TRUE(loop_.call([&] { return processes[0]->live; }));
  const pid_t pid = loop_.call([&] { return processes[0]->pid; });

  auto ended = boost::asio::co_spawn(loop_.io(), maker->ended(), boost::asio::use_future);
  EXPECT_EQ(ended.wait_for(Millis(50)), std::future_status::timeout);
  loop_.await(maker->destroy("deleted"));
  EXPECT_EQ(ended.wait_for(Millis(20'000)), std::future_status::ready);
  const auto late = loop_.await(front->start(request()));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kGone) << "and no keeper is made in its place";
  EXPECT_EQ(spawns_, 1);
  drop(maker);
  drop(front);
  ::kill(pid, SIGKILL);  // without a pid namespace it outlives its keeper
}

TEST_F(HandOverTest, OneThatIsAtWorkOrCannotBeHadIsNotGivenAway) {
  spawn_ = dyingKeeper(refusal("no seccomp today"));
  const auto refused = loop_.await(sandbox_->handOver());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "no seccomp today");
  spawn_ = nullptr;
  const auto started = start(Kind::kProcess);
  ASSERT_TRUE(started);
  EXPECT_EQ(loop_.await(sandbox_->handOver()).error().code, Code::kConflict);
  EXPECT_TRUE(loop_.await(sandbox_->kill(started->exec)));
}

TEST_F(HandOverTest, AMarkThatIsOldOrBrokenNamesNobody) {
  const auto mark = loop_.await(sandbox_->handOver());
  ASSERT_TRUE(mark);
  const std::string path = dir_.path() / "state/keeper.mark";
  const auto load = [&] { return KeeperMark::load(state_.folder.get(), "keeper.mark"); };
  EXPECT_EQ(load().value(), *mark);
  std::string text = sys::readFile(path.c_str()).value();
  // As if the machine had been started anew: the number may be another's by now.
  text[0] = text[0] == '0' ? '1' : '0';
  std::ofstream(path) << text;
  ASSERT_TRUE(load());
  EXPECT_FALSE(*load() == *mark);
  loop_.await(load()->kill());
  for (const char* broken : {"", "x", "a b c", "boot 0 1", "boot 99999999999 1", "boot -1 1"}) {
    std::ofstream(path) << broken;
    EXPECT_FALSE(load()) << broken;
  }
  auto front = another(/*keeperIsGiven=*/true);
  EXPECT_TRUE(loop_.call([&] { return front->hasKeeper(); })) << "it was hit";
  drop(front);
}

TEST_F(SandboxEndTest, ACommandThatRacesWithTheEndRunsOrIsToldSo) {
  for (int i = 0; i < 20; ++i) {
    auto racing = boost::asio::co_spawn(loop_.io(), sandbox_->start(request(Kind::kProcess)),
                                        boost::asio::use_future);
    loop_.await(sandbox_->destroy("deleted"));
    const auto started = racing.get();
    if (started) {
      EXPECT_EQ(started->exec->exit->cause, Cause::kKilled);
      if (started->exec->pid > 0) ::kill(started->exec->pid, SIGKILL);
    } else {
      EXPECT_EQ(started.error().code, Code::kGone) << started.error().message;
    }
    end();
    open("state" + std::to_string(i));
  }
}

}  // namespace
}  // namespace cay::sandbox
