// A machine of its own for tests of networks: a namespace with an eth0 that leads to another one,
// which plays the internet. The test's thread is in it, and so is everything that it starts.
// Whatever is left behind in it at the end is a failure.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "engine/net_space.h"
#include "engine/networks.h"
#include "engine/tool.h"
#include "sys/namespaces.h"
#include "sys/netlink.h"
#include "testing/loop_thread.h"
#include "testing/temp_dir.h"

namespace cay::engine {

inline constexpr char kInternet[] = "198.51.100.7";
inline constexpr char kMetadata[] = "169.254.169.254";
inline constexpr char kGateway[] = "192.0.2.1";
inline constexpr char kMachine[] = "192.0.2.2";
inline constexpr char kMachineToo[] = "10.77.0.1";
inline constexpr uint16_t kPort = 8080;
inline constexpr int kYesMs = 3'000;  // more than any answer takes
inline constexpr int kNoMs = 400;
inline constexpr char kPingers[] = "ipv4/ping_group_range";
inline constexpr char kAllGroups[] = "0 2147483647";

inline sockaddr_in endpoint(const std::string& address, uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, address.c_str(), &out.sin_addr), 1) << address;
  return out;
}

inline bool readable(const Fd& fd, int limitMs) {
  pollfd watched{.fd = fd.get(), .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, limitMs) > 0;
}

class NetworkLab : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make networks";
    // From here on, what cannot be done is a failure: root without its powers proves nothing.
    outside_ = *ownNetSpace();
    before_ = traces();
    const auto made = makeMachine();
    ASSERT_TRUE(made) << made.error().message;
    loop_ = std::make_unique<::cay::testing::LoopThread>();
  }

  void TearDown() override {
    if (!outside_.valid() || !machine_.valid()) return;
    for (auto& [state, hub] : hubs_) {
      if (!hub) continue;
      const auto down = loop_->await(hub->shutdown());
      EXPECT_TRUE(down) << down.error().message;
      loop_->call([&] { hub.reset(); });
    }
    if (loop_) loop_->stop();
    expectNothingLeft();
    ASSERT_TRUE(sys::enter(outside_));
    EXPECT_EQ(traces(), before_) << "the real machine has changed";
  }

  // A hub of its own for each name; one of a name that is open already takes its place, as after a
  // kill: nothing is told to cay-net.
  Result<Networks*> open(const std::string& name, Networks::Options options = {},
                         std::vector<NetworkId> inUse = {}) {
    std::unique_ptr<Networks>& hub = hubs_[name];
    if (hub) loop_->call([&] { hub.reset(); });
    options.state = (dir_.path() / name).string();
    std::filesystem::create_directories(options.state);
    options.leases = leases();
    if (options.resolvers.empty()) options.resolvers = {kInternet};
    options.spares = 1;
    auto opened = loop_->await(Networks::open(loop_->io(), options, std::move(inUse)));
    if (!opened) return std::unexpected(opened.error());
    hub = *std::move(opened);
    return hub.get();
  }

  JobNetwork take(Networks& networks, const std::string& group = {}) {
    auto network = loop_->await(networks.take(group));
    EXPECT_TRUE(network) << network.error().message;
    return network ? *std::move(network) : JobNetwork{};
  }

  // Runs in another namespace.
  template <typename Function>
  auto in(const Fd& space, Function function) {
    std::optional<decltype(function())> out;
    EXPECT_TRUE(runInNetSpace(&space, [&] { out.emplace(function()); }));
    return *std::move(out);
  }

  Fd socketIn(const Fd& space, int type, int protocol = 0, int family = AF_INET) {
    return in(space, [&] { return Fd(::socket(family, type | SOCK_CLOEXEC, protocol)); });
  }

  // Whoever connects is accepted by the kernel.
  Fd listenIn(const Fd& space, uint16_t port, const std::string& address = "0.0.0.0") {
    Fd socket = socketIn(space, SOCK_STREAM);
    const sockaddr_in at = endpoint(address, port);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(::listen(socket.get(), 64), 0);
    return socket;
  }
  Fd receiveIn(const Fd& space, uint16_t port) {
    Fd socket = socketIn(space, SOCK_DGRAM);
    const sockaddr_in at = endpoint("0.0.0.0", port);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    return socket;
  }

  // A connection, or a refusal: either shows that packets go both ways.
  bool tcp(const Fd& from, const std::string& to, uint16_t port, int limitMs) {
    const Fd socket = socketIn(from, SOCK_STREAM | SOCK_NONBLOCK);
    const sockaddr_in at = endpoint(to, port);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0)
      return true;
    if (errno != EINPROGRESS) return errno == ECONNREFUSED;
    pollfd watched{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&watched, 1, limitMs) <= 0) return false;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 || error == ECONNREFUSED;
  }

  // True if a datagram arrives at `receiver`, which is what `to` stands for.
  bool udp(const Fd& from, const std::string& to, uint16_t port, const Fd& receiver, int limitMs) {
    const Fd socket = socketIn(from, SOCK_DGRAM);
    const sockaddr_in at = endpoint(to, port);
    (void)::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&at), sizeof at);
    if (!readable(receiver, limitMs)) return false;
    char buffer[64];
    (void)::recv(receiver.get(), buffer, sizeof buffer, 0);
    return true;
  }

  bool ping(const Fd& from, const std::string& to, int limitMs) {
    const Fd socket = socketIn(from, SOCK_DGRAM, IPPROTO_ICMP);
    EXPECT_TRUE(socket.valid()) << "ping sockets are not allowed";
    const icmphdr request{.type = ICMP_ECHO, .code = 0, .checksum = 0, .un = {}};
    const sockaddr_in at = endpoint(to, 0);
    (void)::sendto(socket.get(), &request, sizeof request, 0,
                   reinterpret_cast<const sockaddr*>(&at), sizeof at);
    char buffer[256];
    return readable(socket, limitMs) && ::recv(socket.get(), buffer, sizeof buffer, 0) > 0;
  }

  std::string leases() { return (dir_.path() / "leases").string(); }

  // Processes that have this text in their arguments; the folder of leases names ours.
  std::vector<pid_t> processesWith(const std::string& text) {
    std::vector<pid_t> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string words{std::istreambuf_iterator<char>(file), {}};
      if (words.find(text) != std::string::npos) found.push_back(std::stoi(name));
    }
    return found;
  }

  template <typename Condition>
  bool eventually(Condition condition, int limitMs = 5'000) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limitMs);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }

  // What networks change in the namespace of the caller.
  static std::string traces() {
    std::string out;
    auto netlink = sys::Netlink::open();
    for (const std::string& link : *netlink->links()) out += link + " ";
    for (const sys::Ipv4 address : *netlink->addresses()) out += address.text() + " ";
    out += "tables: " + runTool("nft", {"list", "tables"}).value_or("no nft");
    out += "forward: " + netSetting("ipv4/ip_forward").value_or("?");
    out += netSetting("ipv4/conf/eth0/forwarding").value_or("no eth0");
    out += netSetting("ipv6/conf/all/forwarding").value_or("?");
    return out;
  }

  Fd outside_;
  Fd machine_;
  Fd internet_;
  ::cay::testing::TempDir dir_;
  std::unique_ptr<::cay::testing::LoopThread> loop_;

 private:
  Result<> makeMachine() {
    CAY_TRY(sys::unshare(CLONE_NEWNET));
    CAY_ASSIGN(machine_, ownNetSpace());
    CAY_TRY(setNetSetting(kPingers, kAllGroups));
    CAY_TRY(inNewNetSpace([this]() -> Result<> {
      CAY_ASSIGN(internet_, ownNetSpace());
      return setNetSetting(kPingers, kAllGroups);
    }));
    CAY_ASSIGN(sys::Netlink machine, sys::Netlink::open());
    CAY_TRY(machine.makeVeth("eth0", "world", internet_));
    CAY_TRY(machine.setUp("lo"));
    CAY_TRY(machine.addAddress("lo", *sys::parseIpv4(kMachineToo), 32));
    CAY_TRY(machine.addAddress("eth0", *sys::parseIpv4(kMachine), 24));
    CAY_TRY(machine.setUp("eth0"));
    CAY_TRY(inNetSpace(internet_, []() -> Result<> {
      CAY_ASSIGN(sys::Netlink world, sys::Netlink::open());
      CAY_TRY(world.setUp("lo"));
      for (const char* address : {kInternet, kMetadata}) {
        CAY_TRY(world.addAddress("lo", *sys::parseIpv4(address), 32));
      }
      CAY_TRY(world.addAddress("world", *sys::parseIpv4(kGateway), 24));
      CAY_TRY(world.setUp("world"));
      // It would answer an address that it has no way back to.
      return world.addDefaultRoute(*sys::parseIpv4(kMachine));
    }));
    CAY_TRY(machine.awaitCarrying("eth0"));
    CAY_TRY(machine.addDefaultRoute(*sys::parseIpv4(kGateway)));
    clean_ = traces();
    return {};
  }

  void expectNothingLeft() {
    EXPECT_TRUE(eventually([&] { return processesWith(leases()).empty(); }));
    EXPECT_TRUE(eventually([&] { return traces() == clean_; })) << traces() << "\nwas\n" << clean_;
    if (!std::filesystem::exists(leases())) return;
    for (const auto& entry : std::filesystem::directory_iterator(leases())) {
      EXPECT_EQ(entry.path().filename(), "lock");
    }
  }

  std::string before_;
  std::string clean_;
  std::map<std::string, std::unique_ptr<Networks>> hubs_;
};

}  // namespace cay::engine
