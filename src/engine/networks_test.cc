// Who can reach whom. Tried with all of root's powers inside the networks, which jobs do not have.
#include "engine/networks.h"

#include <gmock/gmock.h>

#include "engine/network_lab_fixture.h"
#include "sys/packet.h"
#include "testing/eventually.h"

namespace cay::engine {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class NetworksTest : public NetworkLab {
 protected:
  struct Place {
    std::string name;
    const Fd& space;
    std::string address;
  };

  // By TCP, UDP and ICMP, all or none.
  void expectReach(const Fd& from, const Place& to, bool reach) {
    const int limit = reach ? kYesMs : kNoMs;
    const Fd listener = listenIn(to.space, kPort);
    const Fd receiver = receiveIn(to.space, kPort);
    EXPECT_EQ(tcp(from, to.address, kPort, limit), reach) << "tcp to " << to.name;
    EXPECT_EQ(udp(from, to.address, kPort, receiver, limit), reach) << "udp to " << to.name;
    EXPECT_EQ(ping(from, to.address, limit), reach) << "ping to " << to.name;
  }

  Place internet() { return {"the internet", internet_, kInternet}; }

  std::vector<Place> closedToAll() {
    return {{"the machine", machine_, kMachine},
            {"another address of the machine", machine_, kMachineToo},
            {"the machine's end of the uplink", machine_, "100.64.0.1"},
            {"metadata of the cloud", internet_, kMetadata}};
  }

  static Networks::Options options(Outbound outbound) {
    Networks::Options out;
    out.outbound = outbound;
    return out;
  }

  Networks* openKernel(const std::string& name = "hub", std::vector<NetworkId> inUse = {}) {
    auto opened = open(name, options(Outbound::kKernel), std::move(inUse));
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *opened : nullptr;
  }
};

TEST_F(NetworksTest, AJobReachesTheInternetAndNothingElse) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  EXPECT_EQ(networks->outbound(), "kernel nat");
  EXPECT_THAT(networks->notes(), IsEmpty());
  EXPECT_EQ(networks->resolvConf(), "nameserver 198.51.100.7\n");
  const JobNetwork job = take(*networks);
  const JobNetwork other = take(*networks);
  const JobNetwork red = take(*networks, "red");
  expectReach(job.space, internet(), true);
  for (const Place& place : closedToAll()) expectReach(job.space, place, false);
  expectReach(job.space, {"another job", other.space, other.address}, false);
  expectReach(job.space, {"a member of a group", red.space, red.address}, false);
  const std::string router = sys::Ipv4{sys::parseIpv4(job.address)->number - 1}.text();
  EXPECT_FALSE(tcp(job.space, router, kPort, kNoMs)) << "the gateway answers";
  EXPECT_FALSE(ping(job.space, router, kNoMs)) << "the gateway answers";
}

TEST_F(NetworksTest, MembersOfAGroupReachEachOtherAndNoOtherGroup) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork red = take(*networks, "red");
  const JobNetwork redToo = take(*networks, "red");
  const JobNetwork blue = take(*networks, "blue");
  const JobNetwork alone = take(*networks);
  expectReach(red.space, internet(), true);
  expectReach(red.space, {"its group", redToo.space, redToo.address}, true);
  expectReach(redToo.space, {"its group", red.space, red.address}, true);
  for (const Place& place : closedToAll()) expectReach(red.space, place, false);
  expectReach(red.space, {"another group", blue.space, blue.address}, false);
  expectReach(red.space, {"a job that is alone", alone.space, alone.address}, false);
}

TEST_F(NetworksTest, NobodyOutsideReachesAJob) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  // The internet of this lab sends everything that it does not know to the machine.
  expectReach(internet_, {"a job", job.space, job.address}, false);
  expectReach(internet_, {"a router", job.space, "100.64.0.2"}, false);
  expectReach(machine_, {"a job", job.space, job.address}, false);
}

TEST_F(NetworksTest, TheMachineForwardsForJobsAlone) {
  ASSERT_NE(openKernel(), nullptr);
  EXPECT_EQ(netSetting("ipv4/conf/eth0/forwarding").value_or(""), "1");
  ASSERT_TRUE(runTool("nft", {"-f", "-"},
                      "table ip watch {\n counter seen { }\n chain c_post {\n"
                      "  type filter hook postrouting priority 200;\n"
                      "  ip daddr 203.0.113.5 counter name seen\n }\n}\n"));
  const Fd nobody = receiveIn(internet_, kPort);
  EXPECT_FALSE(udp(internet_, "203.0.113.5", kPort, nobody, kNoMs));
  EXPECT_THAT(*runTool("nft", {"list", "counter", "ip", "watch", "seen"}), HasSubstr("packets 0 "));
  EXPECT_FALSE(udp(machine_, "203.0.113.5", kPort, nobody, 0));
  EXPECT_THAT(*runTool("nft", {"list", "counter", "ip", "watch", "seen"}), HasSubstr("packets 1 "));
  ASSERT_TRUE(runTool("nft", {"delete", "table", "ip", "watch"}));
}

TEST_F(NetworksTest, TheMachineShowsOneAddressForAllJobs) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  const Fd receiver = receiveIn(internet_, kPort);
  const Fd socket = socketIn(job.space, SOCK_DGRAM);
  const sockaddr_in to = endpoint(kInternet, kPort);
  ::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  ASSERT_TRUE(readable(receiver, kYesMs));
  char byte = 0;
  sockaddr_in from{};
  socklen_t size = sizeof from;
  ::recvfrom(receiver.get(), &byte, 1, 0, reinterpret_cast<sockaddr*>(&from), &size);
  EXPECT_EQ(sys::Ipv4{ntohl(from.sin_addr.s_addr)}.text(), kMachine);
}

TEST_F(NetworksTest, AFalseSourceAddressGoesNowhere) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  const JobNetwork other = take(*networks);
  const Fd receiver = receiveIn(internet_, kPort);
  const sockaddr_in to = endpoint(kInternet, kPort);
  sys::Netlink inside = *in(job.space, [] { return sys::Netlink::open(); });
  // A true one arrives, so that silence means something.
  ASSERT_TRUE(udp(job.space, kInternet, kPort, receiver, kYesMs));
  for (const std::string& source : {other.address, std::string(kMachine), std::string(kGateway),
                                    std::string("203.0.113.77"), std::string("100.64.0.2")}) {
    ASSERT_TRUE(inside.addAddress("lo", *sys::parseIpv4(source), 32));
    const Fd socket = socketIn(job.space, SOCK_DGRAM);
    const sockaddr_in from = endpoint(source, 0);
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    ASSERT_EQ(::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              1);
    EXPECT_FALSE(readable(receiver, kNoMs)) << source;
  }
  EXPECT_TRUE(udp(job.space, kInternet, kPort, receiver, kYesMs));
}

TEST_F(NetworksTest, Ipv6IsDead) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  const std::string addresses = in(job.space, [] {
    std::ifstream file("/proc/thread-self/net/if_inet6");
    return std::string{std::istreambuf_iterator<char>(file), {}};
  });
  EXPECT_THAT(addresses, Not(HasSubstr("eth0")));
  EXPECT_THAT(addresses, HasSubstr("lo"));
  const Fd socket = socketIn(job.space, SOCK_STREAM, 0, AF_INET6);
  sockaddr_in6 to{};
  to.sin6_family = AF_INET6;
  to.sin6_port = htons(kPort);
  ::inet_pton(AF_INET6, "2001:db8::1", &to.sin6_addr);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), -1);
  EXPECT_EQ(errno, ENETUNREACH);
}

TEST_F(NetworksTest, OneJobCannotHaveAllConnections) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork greedy = take(*networks);
  const JobNetwork modest = take(*networks);
  const Fd receiver = receiveIn(internet_, kPort);
  const sockaddr_in to = endpoint(kInternet, kPort);
  int arrived = 0;
  constexpr int kLimit = 2048;
  const auto drain = [&](int limitMs) {
    char byte = 0;
    while (readable(receiver, limitMs)) {
      if (::recv(receiver.get(), &byte, 1, MSG_DONTWAIT) > 0) ++arrived;
    }
  };
  for (int i = 0; i < kLimit + 200; ++i) {
    const Fd socket = socketIn(greedy.space, SOCK_DGRAM);
    const sockaddr_in from = endpoint("0.0.0.0", static_cast<uint16_t>(20'000 + i));
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from), 0);
    (void)::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    if (i % 64 == 0) drain(0);
  }
  drain(300);
  EXPECT_LE(arrived, kLimit + 1);
  EXPECT_GT(arrived, kLimit - 100);
  EXPECT_TRUE(udp(modest.space, kInternet, kPort, receiver, kYesMs));
}

TEST_F(NetworksTest, AResolverOnTheMachineIsOpenForNamesAlone) {
  Networks::Options named = options(Outbound::kKernel);
  named.resolvers = {kMachine};
  auto opened = open("hub", named);
  ASSERT_TRUE(opened) << opened.error().message;
  const JobNetwork job = take(**opened);
  const Fd names = listenIn(machine_, 53);
  const Fd namesToo = receiveIn(machine_, 53);
  EXPECT_TRUE(tcp(job.space, kMachine, 53, kYesMs));
  EXPECT_TRUE(udp(job.space, kMachine, 53, namesToo, kYesMs));
  EXPECT_FALSE(tcp(job.space, kMachineToo, 53, kNoMs));
  expectReach(job.space, {"the machine", machine_, kMachine}, false);
}

TEST_F(NetworksTest, DialsIntoTheLoopbackOfAJob) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  const Fd four = listenIn(job.space, 5000, "127.0.0.1");
  const Fd six = socketIn(job.space, SOCK_STREAM, 0, AF_INET6);
  sockaddr_in6 at{};
  at.sin6_family = AF_INET6;
  at.sin6_port = htons(5001);
  at.sin6_addr = in6addr_loopback;
  ASSERT_EQ(::bind(six.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(six.get(), 1), 0);
  for (const uint16_t port : {5000, 5001}) {
    const auto stream = loop_->await(networks->dial(job.id, port));
    EXPECT_TRUE(stream) << port << ": " << stream.error().message;
  }
  const auto nothing = loop_->await(networks->dial(job.id, 5002));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::kUnreachable);
  const auto nobody = loop_->await(networks->dial({job.id.epoch, 31'000}, 5000));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::kGone);
}

TEST_F(NetworksTest, CountsWhatAJobSendsAndReceives) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  const std::string payload(1000, 'x');
  const Fd socket = socketIn(job.space, SOCK_DGRAM);
  const sockaddr_in to = endpoint(kInternet, kPort);
  for (int i = 0; i < 10; ++i) {
    (void)::sendto(socket.get(), payload.data(), payload.size(), 0,
                   reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  Result<sys::LinkTraffic> traffic = sys::LinkTraffic{};
  // What is sent waits until the neighbour's address is known.
  EXPECT_TRUE(cay::testing::eventually([&] {
    traffic = loop_->await(networks->traffic(job.id));
    return !traffic || traffic->sentBytes >= 10'000U;
  }));
  ASSERT_TRUE(traffic) << traffic.error().message;
  EXPECT_LT(traffic->receivedBytes, 10'000U);
}

TEST_F(NetworksTest, ANetworkThatWasGivenBackIsGone) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks, "red");
  EXPECT_TRUE(tcp(job.space, kInternet, kPort, kYesMs));
  loop_->call([&] { networks->giveBack(job.id); });
  const auto adopted = loop_->await(networks->adopt(job.id));
  ASSERT_FALSE(adopted);
  EXPECT_EQ(adopted.error().code, Code::kGone);
  EXPECT_TRUE(cay::testing::eventually([&] { return !tcp(job.space, kInternet, kPort, kNoMs); }));
  const JobNetwork next = take(*networks, "red");
  EXPECT_NE(next.address, job.address);
}

// Numbers, addresses and links of those that leave are nobody else's until they are gone.
TEST_F(NetworksTest, ManyMayLeaveAndComeAtOnce) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  for (int round = 0; round < 3; ++round) {
    std::vector<JobNetwork> all;
    for (int i = 0; i < 12; ++i) all.push_back(take(*networks, i % 2 == 0 ? "" : "red"));
    loop_->call([&] {
      for (const JobNetwork& one : all) networks->giveBack(one.id);
    });
    const JobNetwork next = take(*networks);
    for (const JobNetwork& one : all) EXPECT_NE(one.address, next.address);
    EXPECT_TRUE(tcp(next.space, kInternet, kPort, kYesMs));
    loop_->call([&] { networks->giveBack(next.id); });
  }
}

TEST_F(NetworksTest, NetworksOutliveTheHub) {
  Networks* networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork kept = take(*networks);
  const JobNetwork member = take(*networks, "red");
  const JobNetwork forgotten = take(*networks);
  networks = openKernel("hub", {kept.id, member.id});
  ASSERT_NE(networks, nullptr);
  const auto adopted = loop_->await(networks->adopt(kept.id));
  ASSERT_TRUE(adopted) << adopted.error().message;
  EXPECT_EQ(adopted->address, kept.address);
  EXPECT_EQ(*netSpaceName(adopted->space), *netSpaceName(kept.space));
  EXPECT_EQ(loop_->await(networks->adopt(member.id))->group, "red");
  expectReach(kept.space, internet(), true);
  EXPECT_FALSE(loop_->await(networks->adopt(forgotten.id)));
  EXPECT_FALSE(tcp(forgotten.space, kInternet, kPort, kNoMs));
  const JobNetwork redToo = take(*networks, "red");
  expectReach(redToo.space, {"its group", member.space, member.address}, true);
}

TEST_F(NetworksTest, AHubWithoutJobsStartsAfresh) {
  ASSERT_NE(openKernel(), nullptr);
  const auto first = processesWith(leases());
  ASSERT_EQ(first.size(), 1U);
  auto opened = open("hub", options(Outbound::kNone));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_THAT((*opened)->outbound(), StartsWith("loopback only"));
}

TEST_F(NetworksTest, AKilledCayNetTakesTheNetworksAlong) {
  const auto lost = std::make_shared<int>(0);  // the hub outlives the test
  Networks::Options told = options(Outbound::kKernel);
  told.onLost = [lost] { ++*lost; };
  auto opened = open("hub", told);
  ASSERT_TRUE(opened) << opened.error().message;
  Networks& networks = **opened;
  const JobNetwork job = take(networks);
  EXPECT_TRUE(tcp(job.space, kInternet, kPort, kYesMs));
  const auto processes = processesWith(leases());
  ASSERT_EQ(processes.size(), 1U);
  ::kill(processes.front(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return loop_->call([&] { return *lost; }) == 1; }));
  // Fail closed: no way out that nobody watches.
  EXPECT_TRUE(eventually([&] {
    sys::Netlink inside = *in(job.space, [] { return sys::Netlink::open(); });
    return inside.links()->size() == 1;
  }));
  EXPECT_FALSE(tcp(job.space, kInternet, kPort, kNoMs));
  const auto adopted = loop_->await(networks.adopt(job.id));
  ASSERT_FALSE(adopted);
  EXPECT_EQ(adopted.error().code, Code::kGone);
  const JobNetwork next = take(networks);
  EXPECT_NE(next.id.epoch, job.id.epoch);
  expectReach(next.space, internet(), true);
}

TEST_F(NetworksTest, TermEndsCayNetInOrder) {
  ASSERT_NE(openKernel(), nullptr);
  const auto processes = processesWith(leases());
  ASSERT_EQ(processes.size(), 1U);
  ::kill(processes.front(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return processesWith(leases()).empty(); }));
  EXPECT_EQ(netSetting("ipv4/conf/eth0/forwarding").value_or(""), "0");
}

TEST_F(NetworksTest, TwoHubsDoNotMeet) {
  Networks* const first = openKernel("first");
  Networks* const second = openKernel("second");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  const JobNetwork job = take(*first);
  const JobNetwork other = take(*second);
  // Their numbers and addresses are the same; one that is not ours as well shows more.
  JobNetwork third = take(*second);
  while (third.address == job.address) third = take(*second);
  expectReach(job.space, internet(), true);
  expectReach(other.space, internet(), true);
  expectReach(job.space, {"a job of another hub", third.space, third.address}, false);
  expectReach(job.space, {"the router of another hub", machine_, "100.64.0.6"}, false);
  expectReach(job.space, {"the uplink of another hub", machine_, "100.64.0.5"}, false);
  ASSERT_TRUE(loop_->await(first->shutdown()));
  EXPECT_EQ(netSetting("ipv4/conf/eth0/forwarding").value_or(""), "1");
  expectReach(other.space, internet(), true);
}

TEST_F(NetworksTest, ForwardingThatOthersOpenedStaysOpen) {
  ASSERT_TRUE(setNetSetting("ipv4/conf/eth0/forwarding", "1"));
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  ASSERT_TRUE(loop_->await(networks->shutdown()));
  EXPECT_EQ(netSetting("ipv4/conf/eth0/forwarding").value_or(""), "1");
  ASSERT_TRUE(setNetSetting("ipv4/conf/eth0/forwarding", "0"));
}

class ForeignFirewall : public NetworksTest {
 protected:
  void SetUp() override {
    NetworksTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto set = runTool("nft", {"-f", "-"},
                             "table ip foreign {\n chain c_forward {\n"
                             "  type filter hook forward priority 0; policy drop;\n }\n}\n");
    ASSERT_TRUE(set) << set.error().message;
  }
  void TearDown() override {
    if (machine_.valid()) (void)runTool("nft", {"delete", "table", "ip", "foreign"});
    NetworksTest::TearDown();
  }
};

TEST_F(ForeignFirewall, IsNoticedAtTheStart) {
  const auto opened = open("hub", options(Outbound::kKernel));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::kUnreachable);
  EXPECT_THAT(opened.error().message, HasSubstr("firewall"));
}

TEST_F(ForeignFirewall, MakesSlirpTakeOver) {
  auto opened = open("hub");
  ASSERT_TRUE(opened) << opened.error().message;
  Networks& networks = **opened;
  EXPECT_THAT(networks.outbound(), StartsWith("slirp4netns (no kernel nat: "));
  EXPECT_THAT(networks.notes(), Contains(HasSubstr("slirp4netns")));
  const JobNetwork job = take(networks);
  const JobNetwork other = take(networks);
  const Fd listener = listenIn(internet_, kPort);
  const Fd receiver = receiveIn(internet_, kPort);
  EXPECT_TRUE(tcp(job.space, kInternet, kPort, kYesMs));
  EXPECT_TRUE(udp(job.space, kInternet, kPort, receiver, kYesMs));
  const Fd own = listenIn(machine_, kPort);
  for (const char* address : {kMachine, kMachineToo, kMetadata, "100.127.255.2"}) {
    EXPECT_FALSE(tcp(job.space, address, kPort, kNoMs)) << address;
  }
  expectReach(job.space, {"another job", other.space, other.address}, false);
}

TEST_F(NetworksTest, SlirpIsWatched) {
  auto opened = open("hub", options(Outbound::kSlirp));
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->outbound(), "slirp4netns");
  const JobNetwork job = take(**opened);
  const Fd listener = listenIn(internet_, kPort);
  EXPECT_TRUE(tcp(job.space, kInternet, kPort, kYesMs));

  // An address that the machine gets later is closed too.
  const Fd own = listenIn(machine_, kPort);
  sys::Netlink machine = *sys::Netlink::open();
  ASSERT_TRUE(machine.makeBridge("extra"));
  ASSERT_TRUE(machine.addAddress("extra", *sys::parseIpv4("10.88.0.1"), 24));
  ASSERT_TRUE(machine.setUp("extra"));
  EXPECT_TRUE(eventually([&] { return !tcp(job.space, "10.88.0.1", kPort, kNoMs); }));
  ASSERT_TRUE(machine.removeLink("extra"));

  // One that dies is replaced.
  const auto net = processesWith(leases());
  ASSERT_EQ(net.size(), 1U);
  const std::string itsRouter = "/proc/" + std::to_string(net.front()) + "/fd/";
  const auto slirp = processesWith(itsRouter);
  ASSERT_FALSE(slirp.empty());
  for (const pid_t process : slirp) ::kill(process, SIGKILL);
  EXPECT_TRUE(eventually(
      [&] {
        const auto next = processesWith(itsRouter);
        return !next.empty() && next != slirp && tcp(job.space, kInternet, kPort, kNoMs);
      },
      15'000));

  // It does not outlive its master.
  ::kill(net.front(), SIGKILL);
  EXPECT_TRUE(eventually([&] { return processesWith(itsRouter).empty(); }));
}

TEST_F(NetworksTest, LoopbackOnlyStillHasGroups) {
  auto opened = open("hub", options(Outbound::kNone));
  ASSERT_TRUE(opened) << opened.error().message;
  Networks& networks = **opened;
  EXPECT_EQ(networks.outbound(), "loopback only: as configured");
  EXPECT_THAT(networks.notes(), Contains(HasSubstr("loopback only")));
  EXPECT_EQ(networks.resolvConf(), "");
  const JobNetwork job = take(networks);
  EXPECT_EQ(job.address, "");
  sys::Netlink inside = *in(job.space, [] { return sys::Netlink::open(); });
  EXPECT_THAT(*inside.links(), ::testing::ElementsAre("lo"));
  EXPECT_FALSE(tcp(job.space, kInternet, kPort, kNoMs));
  const Fd listener = listenIn(job.space, 5000, "127.0.0.1");
  EXPECT_TRUE(loop_->await(networks.dial(job.id, 5000)));
  const JobNetwork red = take(networks, "red");
  const JobNetwork redToo = take(networks, "red");
  const JobNetwork blue = take(networks, "blue");
  expectReach(red.space, {"its group", redToo.space, redToo.address}, true);
  expectReach(red.space, {"another group", blue.space, blue.address}, false);
  expectReach(red.space, internet(), false);
}

TEST_F(NetworksTest, WithoutADefaultRouteThereIsOnlyLoopback) {
  sys::Netlink machine = *sys::Netlink::open();
  ASSERT_TRUE(machine.removeLink("eth0"));
  const auto kernel = open("hub", options(Outbound::kKernel));
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("no default route"));
  // As it was, for what is compared at the end.
  ASSERT_TRUE(machine.makeVeth("eth0", "world", internet_));
  ASSERT_TRUE(machine.addAddress("eth0", *sys::parseIpv4(kMachine), 24));
}

TEST_F(NetworksTest, NonsenseIsRefusedAndHarmless) {
  Networks* const networks = openKernel();
  ASSERT_NE(networks, nullptr);
  const JobNetwork job = take(*networks);
  {
    const Fd folder(::open((dir_.path() / "hub").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto stranger = sys::connectAt(folder.get(), "net.sock");
    ASSERT_TRUE(stranger);
    for (const std::string& said : {std::string("\xff"), std::string(1, '\0'),
                                    std::string("\x03\xff\xff\xff\xff", 5), std::string(9, '\7')}) {
      ASSERT_TRUE(sys::sendPacket(stranger->get(), said));
    }
    EXPECT_TRUE(readable(*stranger, kYesMs));
  }
  ASSERT_NE(openKernel("hub", {job.id}), nullptr);
  expectReach(job.space, internet(), true);
}

}  // namespace
}  // namespace cay::engine
