// A keeper is behind the walls with the code that it runs. Should that get hold of it, the host
// stays what it was: here the test is the keeper.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

#include "sandbox/sandbox.h"
#include "sys/process.h"
#include "testing/eventually.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

constexpr int kPatienceMs = 20'000;
constexpr size_t kKeptRecords = 5;

// A process that does nothing until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ != 0) return;
    ::close_range(0, ~0U, 0);  // what it holds open would not end with others
    while (true) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] Fd pidfd() const { return sys::pidfdOpen(pid_).value(); }
  [[nodiscard]] bool ended() const {
    siginfo_t info{};
    (void)::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid_;
  }

 private:
  pid_t pid_;
};

class HostileKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = Fd(::open(dir_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::mkdirat(folder_.get(), "execs", 0700), 0);
    Sandbox::Options options;
    options.folder = {.base = folder_.get(), .prefix = ""};
    options.retention.execs = kKeptRecords;
    options.retention.processes = kKeptRecords;
    options.spawnKeeper = [this](Fd listener) -> Result<> {
      host_ = Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return {};
    };
    sandbox_ = std::make_unique<Sandbox>(loop_.io(), std::move(options));
    ASSERT_TRUE(loop_.await(sandbox_->prepare()));
    say(hello(), keeper_.pidfd());
    say(Writer().put(Message::kReady));
    ASSERT_TRUE(loop_.await(sandbox_->settled(Millis(kPatienceMs))));
  }
  void TearDown() override {
    loop_.call([&] { sandbox_.reset(); });
  }

  static Writer hello() {
    Writer hello;
    hello.put(Message::kHello).put(kKeeperProtocol).put(std::string_view("cgroup"));
    return hello.put(std::string_view());
  }

  void say(const Writer& message, const Fd& fd = {}) const {
    ASSERT_TRUE(sys::sendPacket(host_.get(), message.bytes(), fd.get()));
  }
  // Until what was said before has been heard: answers come in the order of what is said.
  void heard() {
    auto answered = std::async(std::launch::async, [&] { (void)loop_.await(sandbox_->root()); });
    (void)askedFor(Message::kAskRoot);
    say(Writer().put(Message::kRoot).put(false));
    answered.get();
  }

  // A process that the host takes for started.
  ExecPtr start() {
    StartRequest request;
    request.spec.kind = Kind::kProcess;
    request.spec.argv = {"/bin/true"};
    request.cmd = "1";
    auto started = std::async(std::launch::async, [&] {
      return loop_.await(sandbox_->start(std::move(request))).value().exec;
    });
    const ExecSpec spec = asked();
    say(about(Message::kStarted, spec.id).put(int32_t{7}));
    return started.get();
  }

  // What the host wants to be started.
  ExecSpec asked() const {
    const std::string message = askedFor(Message::kStart);
    Reader in(message);
    (void)in.get<Message>();
    (void)getOffsets(in);
    (void)in.get<bool>();
    (void)in.get<uint64_t>();
    return getSpec(in);
  }

  // The next message of that kind.
  std::string askedFor(Message kind) const {
    pollfd readable{.fd = host_.get(), .events = POLLIN, .revents = 0};
    while (::poll(&readable, 1, kPatienceMs) == 1) {
      auto packet = sys::receivePacket(host_.get());
      if (!packet || packet->data.empty()) break;
      if (Reader(packet->data).get<Message>() == kind) return std::move(packet->data);
    }
    ADD_FAILURE() << "nothing was asked for";
    return {};
  }

  static Writer about(Message kind, std::string_view id) {
    Writer message;
    message.put(kind).put(id);
    return message;
  }
  static Writer gone(std::string_view id, uint64_t total = 0) {
    Writer message = about(Message::kGone, id);
    putOffsets(message, {{total, 0}});
    putOffsets(message, {{kNoLimit, kNoLimit}});
    return message;
  }
  static Writer exited(std::string_view id, Cause cause) {
    Writer message = about(Message::kExit, id);
    ExitRecord record;
    record.cause = cause;
    putExit(message, record);
    putOffsets(message, {{kNoLimit, kNoLimit}});
    return message;
  }

  testing::TempDir dir_;
  Fd folder_;
  Sleeper keeper_;
  Fd host_;
  testing::LoopThread loop_;
  std::unique_ptr<Sandbox> sandbox_;
};

TEST_F(HostileKeeperTest, NamesNobodyElseToBeKilledInItsPlace) {
  const Sleeper other;
  say(hello(), other.pidfd());
  heard();
  std::thread dying([&] { loop_.await(sandbox_->destroy("deleted")); });
  EXPECT_TRUE(testing::eventually([&] { return keeper_.ended(); }));
  host_.reset();
  dying.join();
  EXPECT_FALSE(other.ended());
}

TEST_F(HostileKeeperTest, AnEndThatIsToldAgainAndAgainCountsOnce) {
  const ExecPtr exec = start();
  for (size_t i = 0; i < 4 * kKeptRecords; ++i) say(gone(exec->id));
  heard();
  loop_.await(net::sleepFor(Millis(100)));  // old records are removed a moment later
  loop_.call([&] {
    EXPECT_EQ(sandbox_->find(exec->id), exec) << "it took the places of others";
    EXPECT_EQ(sandbox_->running(), 0U);
  });
}

TEST_F(HostileKeeperTest, APipeInPlaceOfALogKeepsNobodyWaiting) {
  const ExecPtr exec = start();
  ASSERT_EQ(::mkfifoat(folder_.get(), ("execs/" + exec->file).c_str(), 0600), 0);
  say(gone(exec->id, 1000));
  heard();
  loop_.call([&] {
    Follower follower(*sandbox_, exec, {}, /*listening=*/false);
    EXPECT_FALSE(follower.next());
  });
}

TEST_F(HostileKeeperTest, WhatRanAndThenWasNeverStartedHasAnEnd) {
  const ExecPtr exec = start();
  say(about(Message::kStartFailed, exec->id)
          .put(StartFault::kShortage)
          .put(int32_t{1})
          .put(std::string_view("later")));
  heard();
  loop_.call([&] {
    ASSERT_TRUE(exec->exit) << "whoever follows it waits for ever";
    EXPECT_EQ(exec->exit->cause, Cause::kStartFailed);
  });
}

TEST_F(HostileKeeperTest, WhatIsGoneWithoutAnEndGetsOne) {
  const ExecPtr exec = start();
  say(gone(exec->id));
  heard();
  loop_.call([&] {
    ASSERT_TRUE(exec->exit) << "whoever follows it waits for ever";
    EXPECT_EQ(exec->exit->cause, Cause::kHostLost);
  });
}

TEST_F(HostileKeeperTest, BytesThatMeanNothingDoNoHarm) {
  const ExecPtr exec = start();
  say(exited(exec->id, static_cast<Cause>(200)).put(uint8_t{77}));
  heard();
  loop_.call([&] {
    EXPECT_EQ(causeName(exec->exit->cause), "unknown");
    EXPECT_FALSE(exec->live) << "every byte but 0 is true";
  });
}

}  // namespace
}  // namespace cay::sandbox
