// Sandboxes whose keeper cannot be had, and the end of one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "base/clock.h"
#include "sandbox/keeper_process.h"
#include "sandbox/sandbox.h"
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
