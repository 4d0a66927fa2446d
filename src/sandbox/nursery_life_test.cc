// A network that is given, and how long a keeper lives.
#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "isolation/end_user.h"
#include "sandbox/nursery_fixture.h"
#include "sys/namespaces.h"

namespace cay::sandbox {
namespace {

Fd ownNetwork() {
  return Fd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

// A namespace that nobody else has, with a name to know it by.
Fd newNetwork() {
  const Fd before = ownNetwork();
  EXPECT_TRUE(sys::unshare(CLONE_NEWNET));
  Fd made = ownNetwork();
  EXPECT_TRUE(sys::enter(before, CLONE_NEWNET));
  return made;
}

std::string nameOf(const Fd& network) {
  struct stat info{};
  ::fstat(network.get(), &info);
  return "net:[" + std::to_string(info.st_ino) + "]";
}

class LifeTest : public NurseryTest {
 protected:
  bool gone(int64_t withinMs) {
    pollfd watched{.fd = link_.get(), .events = POLLIN, .revents = 0};
    for (const int64_t until = monotonicMs() + withinMs; monotonicMs() < until;) {
      if (::poll(&watched, 1, 50) <= 0) continue;
      const auto packet = sys::receivePacket(link_.get());
      if (!packet || packet->data.empty()) return true;
    }
    return false;
  }
  // As a host that comes anew; true if there is a keeper.
  bool reconnect(const Plan& plan) {
    const Fd folder(::open(folderOf(plan).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto again = sys::connectAt(folder.get(), kKeeperSocketName);
    if (!again) return false;
    link_ = std::move(*again);
    return kindOf(receive()) == Message::kHello;
  }
};

TEST_F(LifeTest, AGivenNetworkIsTheOneItIsIn) {
  const Fd network = newNetwork();
  const Plan sandbox = plan(Network::kGiven);
  raise(sandbox, network);
  EXPECT_EQ(run(sandbox, "readlink /proc/self/ns/net").output, nameOf(network) + "\n");
  EXPECT_EQ(run(sandbox,
                "python3 -c 'import socket; s=socket.create_server((\"127.0.0.1\", 80));"
                "c=socket.create_connection((\"127.0.0.1\", 80)); print(\"ok\")'")
                .output,
            "ok\n");
  // The host's sockets are the sandbox's as well.
  Writer ask;
  ASSERT_TRUE(sys::sendPacket(link_.get(), ask.put(Message::kAskSocket).bytes()));
  sys::Packet answer = receive();
  const Fd socket = answer.take();
  ASSERT_TRUE(socket.valid());
  const Fd of(::ioctl(socket.get(), SIOCGSKNS));
  EXPECT_EQ(nameOf(of), nameOf(network));
}

TEST_F(LifeTest, NothingLeadsOutOfAGivenNetwork) {
  // A server of the host's, on its loopback and by an abstract name.
  const Fd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(::listen(server.get(), 1), 0);
  ::getsockname(server.get(), reinterpret_cast<sockaddr*>(&address), &length);
  const std::string port = std::to_string(ntohs(address.sin_port));
  const Plan sandbox = plan(Network::kGiven);
  raise(sandbox, newNetwork());
  for (const std::string& attempt :
       {"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", " + port + "), 1)'",
        std::string("nsenter -t 1 -n true"), std::string("nsenter --net=/proc/1/ns/net true"),
        std::string("unshare -n true"), std::string("ip link set lo down"),
        std::string("ip link add x type dummy"), std::string("ip addr add 10.0.0.1/8 dev lo"),
        std::string("python3 -c 'import socket; socket.socket(socket.AF_PACKET, 3)'"),
        std::string("python3 -c 'import socket; socket.socket(2, socket.SOCK_RAW, 1)'"),
        std::string("echo 1 > /proc/sys/net/ipv4/ip_forward")}) {
    EXPECT_NE(run(sandbox, "(" + attempt + ") 2>&1").exit.exitCode, 0) << attempt;
  }
  // No descriptor of a namespace is left to a command.
  EXPECT_EQ(run(sandbox, "ls -l /proc/self/fd | grep -c net:").output, "0\n");
}

TEST_F(LifeTest, WithoutAProperNetworkThereIsNoSandbox) {
  EXPECT_TRUE(refusal(plan(Network::kGiven)).contains("no network was given"));
  EXPECT_TRUE(refusal(plan(Network::kGiven), ownNetwork()).contains("host's own"));
  const Fd other(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  EXPECT_NE(refusal(plan(Network::kGiven), other), "");
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_NE(refusal(plan(Network::kGiven), file), "");
}

TEST_F(LifeTest, ALifetimeEndsEverythingWithoutAnyHost) {
  Plan sandbox = plan();
  sandbox.lifetimeMs = 1'500;
  sandbox.stays = true;
  raise(sandbox);
  const ExecSpec spec =
      start("trap '' TERM; setsid sleep 1000 & while :; do sleep 1; done", OnDisconnect::kKeep);
  const int64_t begun = monotonicMs();
  ::usleep(300'000);
  link_.reset();  // as if the host were dead
  // Its socket is closed with it, and its folder has the last word of its command.
  for (const int64_t until = begun + 15'000; monotonicMs() < until; ::usleep(50'000)) {
    const Fd folder(::open(folderOf(sandbox).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!sys::connectAt(folder.get(), kKeeperSocketName)) break;
  }
  EXPECT_FALSE(reconnect(sandbox));
  EXPECT_GE(monotonicMs() - begun, 1'400);
  EXPECT_LT(monotonicMs() - begun, 12'000);
  const Fd logs(::open((folderOf(sandbox) / "execs").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto exit = LogReader::open(logs.get(), spec.file)->exit();
  ASSERT_TRUE(exit && exit->has_value());
  EXPECT_EQ((*exit)->cause, Cause::kTimedOut);
  EXPECT_FALSE(isolation::anyLeftOf(sandbox.firstUid)) << "something of it has survived";
}

TEST_F(LifeTest, ALifetimeEndsAlsoWithAHostThatHasStoppedReading) {
  Plan sandbox = plan();
  sandbox.lifetimeMs = 1'000;
  raise(sandbox);
  // So much is told that the socket is full, and nobody reads it.
  Writer ask;
  ask.put(Message::kAskSocket);
  for (int i = 0; i < 2'000; ++i) {
    if (!sys::sendPacket(link_.get(), ask.bytes())) ::usleep(1'000);
  }
  ::usleep(8'000'000);
  EXPECT_TRUE(gone(5'000));
  link_.reset();
}

TEST_F(LifeTest, AKeeperThatStaysDoesNotLeaveForWantOfAHost) {
  const Plan leaves = plan();
  raise(leaves);
  link_.reset();
  Plan stays = plan();
  stays.stays = true;
  raise(stays);
  (void)run(stays, "touch /root/mark");
  link_.reset();
  ::usleep(11'500'000);
  EXPECT_FALSE(reconnect(leaves));
  ASSERT_TRUE(reconnect(stays));
  EXPECT_EQ(kindOf(receive()), Message::kReady);
  EXPECT_EQ(run(stays, "ls /root").output, "mark\n");
}

}  // namespace
}  // namespace cay::sandbox
