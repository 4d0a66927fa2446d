// Keepers behind real walls, spoken to as a host does. Needs root.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/ids.h"
#include "isolation/limit_groups.h"
#include "sandbox/keeper_protocol.h"
#include "sandbox/launch.h"
#include "sandbox/nursery.h"
#include "sandbox/output_log.h"
#include "sandbox/wire.h"
#include "sys/packet.h"
#include "testing/temp_dir.h"

namespace cay::sandbox {

namespace fs = std::filesystem;
using isolation::Mode;
using isolation::Network;
using isolation::Plan;

inline constexpr LogShape kShape{.headBytes = 64 << 10, .ringBytes = 64 << 10};
inline constexpr uint32_t kFirstUid = 3'000'000;

struct Outcome {
  ExitRecord exit;
  std::string output;
};

inline Message kindOf(const sys::Packet& packet) {
  Reader in(packet.data);
  return in.get<Message>();
}

inline std::string textOf(const sys::Packet& packet) {
  Reader in(packet.data);
  in.get<Message>();
  return std::string(in.text());
}

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
    startNursery();
  }

  void startNursery() {
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
             .limits = {},
             .binds = {}};
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
  sys::Packet begin(const Plan& plan, const Fd& network = Fd()) {
    const Fd folder(::open(folderOf(plan).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto listener = sys::listenAt(folder.get(), kKeeperSocketName);
    link_ = sys::connectAt(folder.get(), kKeeperSocketName).value();
    EXPECT_TRUE(nursery_->spawn(plan, *listener, network));
    return receive();
  }

  sys::Packet receive() {
    pollfd watched{.fd = link_.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&watched, 1, 10'000), 1) << "the keeper does not answer";
    auto packet = sys::receivePacket(link_.get());
    return packet ? std::move(*packet) : sys::Packet{};
  }

  // A keeper that is at work.
  void raise(const Plan& plan, const Fd& network = Fd()) {
    const sys::Packet hello = begin(plan, network);
    ASSERT_EQ(kindOf(hello), Message::kHello) << textOf(hello);
    ASSERT_EQ(kindOf(receive()), Message::kReady);
  }
  // Why there is no keeper; empty if there is one.
  std::string refusal(const Plan& plan, const Fd& network = Fd()) {
    const sys::Packet first = begin(plan, network);
    if (kindOf(first) == Message::kRefused) return textOf(first);
    end();
    return {};
  }
  void end() {
    Writer message;
    (void)sys::sendPacket(link_.get(), message.put(Message::kShutdown).bytes());
    while (!receive().data.empty()) {
    }
    link_.reset();
  }

  ExecSpec start(const std::string& script, OnDisconnect onDisconnect = OnDisconnect::kKill) {
    ExecSpec spec;
    spec.onDisconnect = onDisconnect;
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
    return spec;
  }

  Outcome run(const Plan& plan, const std::string& script) { return await(plan, start(script)); }
  Outcome await(const Plan& plan, const ExecSpec& spec) {
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
    if (link_.valid()) end();
    isolation::LimitGroups::find(groups_).removeAll();
  }

  testing::TempDir dir_;
  const std::string groups_ = newId("cay");
  std::unique_ptr<Nursery> nursery_;
  Fd link_;
  uint32_t nextSlot_ = 0;
};

}  // namespace cay::sandbox
