// Keepers behind real walls, spoken to as a host does. Needs root.
#include "sandbox/nursery.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/ids.h"
#include "isolation/limit_groups.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/launch.h"
#include "sandbox/output_log.h"
#include "sandbox/wire.h"
#include "sys/packet.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {
namespace {

namespace fs = std::filesystem;
using isolation::Mode;
using isolation::Network;
using isolation::Plan;

constexpr LogShape kShape{.headBytes = 64 << 10, .ringBytes = 64 << 10};
constexpr uint32_t kFirstUid = 3'000'000;

struct Outcome {
  ExitRecord exit;
  std::string output;
};

class NurseryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can raise all walls";
    for (const char* folder : {"etc", "root", "tmp", "proc", "dev", "usr", "run"}) {
      fs::create_directories(skeleton() / folder);
    }
    fs::permissions(skeleton(), fs::perms{0755});
    for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
      fs::create_symlink(fs::path("usr") / name, skeleton() / name);
    }
    fs::create_directories(sandboxes());
    auto started = Nursery::start(
        {.mode = Mode::kFull, .sandboxes = sandboxes(), .groupName = groups_, .shape = kShape});
    ASSERT_TRUE(started) << started.error().message;
    nursery_ = std::move(*started);
  }

  fs::path skeleton() { return dir_.path() / "skeleton"; }
  fs::path sandboxes() { return dir_.path() / "sandboxes"; }
  fs::path folderOf(const Plan& plan) { return sandboxes() / plan.id; }

  Plan plan(Network network = Network::kHost) {
    Plan out{.id = newId("s"),
             .mode = Mode::kFull,
             .network = network,
             .slot = nextSlot_++,
             .root = {{.at = "/", .lowers = {skeleton()}}, {.at = "/usr", .lowers = {"/usr"}}},
             .limits = {}};
    out.firstUid = kFirstUid + out.slot * isolation::kIdsPerSandbox;
    fs::create_directories(folderOf(out) / "execs");
    for (size_t i = 0; i < out.root.size(); ++i) {
      for (const char* part : {"upper", "work"}) {
        const fs::path path = folderOf(out) / "tops" / std::to_string(i) / part;
        fs::create_directories(path);
        EXPECT_EQ(::chown(path.c_str(), out.firstUid, out.firstUid), 0);
      }
    }
    return out;
  }

  // Connects to a new keeper; the first message is kHello or kRefused.
  sys::Packet begin(const Plan& plan) {
    const Fd folder(::open(folderOf(plan).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto listener = sys::listenAt(folder.get(), kKeeperSocketName);
    link_ = sys::connectAt(folder.get(), kKeeperSocketName).value();
    EXPECT_TRUE(nursery_->spawn(plan, *listener));
    return receive();
  }

  sys::Packet receive() {
    pollfd watched{.fd = link_.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&watched, 1, 10'000), 1) << "the keeper does not answer";
    auto packet = sys::receivePacket(link_.get());
    return packet ? std::move(*packet) : sys::Packet{};
  }

  Outcome run(const Plan& plan, const std::string& script) {
    ExecSpec spec;
    spec.id = newId("x");
    spec.file = spec.id;
    spec.argv = {"/bin/sh", "-c", script};
    spec.env = {"PATH=/usr/bin:/bin", "HOME=/root"};
    spec.cwd = "/root";
    spec.meta = "{}";
    Writer message;
    message.put(Message::kStart);
    putOffsets(message, {{kNoLimit, kNoLimit}});
    message.put(true).put(uint64_t{0});
    putSpec(message, spec);
    EXPECT_TRUE(sys::sendPacket(link_.get(), message.bytes()));
    Outcome outcome;
    while (true) {
      const sys::Packet packet = receive();
      Reader in(packet.data);
      const auto kind = in.get<Message>();
      if (kind == Message::kStartFailed) {
        in.text();
        in.get<StartFault>();
        in.get<int32_t>();
        ADD_FAILURE() << in.text();
        return outcome;
      }
      if (packet.data.empty()) {
        ADD_FAILURE() << "the keeper died";
        return outcome;
      }
      if (kind != Message::kExit) continue;
      in.text();
      outcome.exit = getExit(in);
      break;
    }
    const Fd folder(::open((folderOf(plan) / "execs").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto log = LogReader::open(folder.get(), spec.file);
    if (!log) {
      ADD_FAILURE() << log.error().message;
      return outcome;
    }
    for (const StreamId stream : {kStdout, kStderr}) {
      std::string buffer(outcome.exit.outputBytes[stream], '\0');
      const auto got = log->read(stream, 0, buffer);
      outcome.output += buffer.substr(0, got.value_or(0));
    }
    return outcome;
  }

  void TearDown() override {
    if (link_.valid()) {
      Writer message;
      (void)sys::sendPacket(link_.get(), message.put(Message::kShutdown).bytes());
      while (!receive().data.empty()) {
      }
    }
    isolation::LimitGroups::find(groups_).removeAll();
  }

  testing::TempDir dir_;
  const std::string groups_ = newId("cay");
  std::unique_ptr<Nursery> nursery_;
  Fd link_;
  uint32_t nextSlot_ = 0;
};

Message kindOf(const sys::Packet& packet) {
  Reader in(packet.data);
  return in.get<Message>();
}

std::string textOf(const sys::Packet& packet) {
  Reader in(packet.data);
  in.get<Message>();
  return std::string(in.text());
}

TEST_F(NurseryTest, ACommandIsRootOfItsOwnSmallWorld) {
  const Plan sandbox = plan();
  const sys::Packet hello = begin(sandbox);
  ASSERT_EQ(kindOf(hello), Message::kHello) << textOf(hello);
  EXPECT_TRUE(hello.fd.valid());
  (void)receive();  // kReady
  const Outcome who = run(sandbox, "id -u; id -g; hostname; echo $$; ls /proc | grep -c '^[0-9]'");
  EXPECT_EQ(who.exit.exitCode, 0);
  EXPECT_TRUE(who.output.starts_with("0\n0\n" + sandbox.id + "\n")) << who.output;
  const Outcome writes =
      run(sandbox, "echo x > /etc/mine && mkdir -p /usr/local/mine && cat /etc/mine");
  EXPECT_EQ(writes.output, "x\n");
  EXPECT_FALSE(fs::exists(skeleton() / "etc/mine"));
  EXPECT_FALSE(fs::exists("/usr/local/mine"));
  struct stat info{};
  ASSERT_EQ(::stat((folderOf(sandbox) / "tops/0/upper/etc/mine").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, sandbox.firstUid);
}

TEST_F(NurseryTest, AnOwnNetworkHasALoopbackAndAllPorts) {
  const Plan sandbox = plan(Network::kNone);
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bound =
      run(sandbox,
          "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\", 80));"
          "c=socket.create_connection((\"127.0.0.1\", 80)); print(\"ok\")'");
  EXPECT_EQ(bound.output, "ok\n");
}

TEST_F(NurseryTest, TheHostsNetworkCannotBeBound) {
  const Plan sandbox = plan();
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bound =
      run(sandbox, "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 18080))' 2>&1");
  EXPECT_NE(bound.exit.exitCode, 0);
  EXPECT_TRUE(bound.output.contains("Permission denied")) << bound.output;
}

TEST_F(NurseryTest, AWallThatCannotRiseIsARefusal) {
  Plan sandbox = plan();
  sandbox.root[1].lowers = {"/no/such/folder"};
  const sys::Packet answer = begin(sandbox);
  EXPECT_EQ(kindOf(answer), Message::kRefused);
  EXPECT_TRUE(textOf(answer).contains("/no/such/folder")) << textOf(answer);
  EXPECT_TRUE(receive().data.empty());
}

TEST_F(NurseryTest, OneProcessTooManyIsRefusedAndTold) {
  Plan sandbox = plan();
  sandbox.limits.pids = 8;
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bomb = run(sandbox, "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1 & done; wait");
  EXPECT_EQ(bomb.exit.limitsHit & kLimitPids, kLimitPids) << bomb.output;
}

TEST_F(NurseryTest, TooMuchMemoryEndsTheCommandAsOom) {
  Plan sandbox = plan();
  sandbox.limits.memoryBytes = 64 << 20;
  ASSERT_EQ(kindOf(begin(sandbox)), Message::kHello);
  (void)receive();
  const Outcome bomb = run(sandbox, "python3 -c 'x = bytearray(300 << 20)'");
  EXPECT_EQ(bomb.exit.cause, Cause::kOom) << bomb.output;
}

}  // namespace
}  // namespace cay::sandbox
