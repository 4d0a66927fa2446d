// In a network namespace of the test's own thread. Needs root.
#include "sys/netlink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "sys/file.h"
#include "sys/namespaces.h"

namespace cay::sys {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr Ipv4 kNear{0x0a010000};
constexpr Ipv4 kFar{0x0a010001};

Fd ownSpace() {
  return *openAt(AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY);
}

class NetlinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
    home_ = ownSpace();
    ASSERT_TRUE(unshare(CLONE_NEWNET));
    other_ = ownSpace();
    auto inside = Netlink::open();
    ASSERT_TRUE(unshare(CLONE_NEWNET));
    auto here = Netlink::open();
    ASSERT_TRUE(inside && here);
    inside_ = std::make_unique<Netlink>(*std::move(inside));
    here_ = std::make_unique<Netlink>(*std::move(here));
  }
  void TearDown() override {
    if (home_.valid()) ASSERT_TRUE(enter(home_));
  }

  Fd home_;
  Fd other_;
  std::unique_ptr<Netlink> here_;
  std::unique_ptr<Netlink> inside_;  // bound to other_, wherever we are
};

TEST(Ipv4Test, IsReadAndWritten) {
  EXPECT_EQ(parseIpv4("127.0.0.1")->number, 0x7f000001U);
  EXPECT_EQ(Ipv4{0x64410005}.text(), "100.65.0.5");
  for (const char* wrong : {"", "1.2.3", "1.2.3.4.5", "256.1.1.1", "::1", "1.2.3.4/24", " 1.2.3.4",
                            "1.2.3.4\n", "01.2.3.4"}) {
    EXPECT_FALSE(parseIpv4(wrong)) << wrong;
  }
  EXPECT_FALSE(parseIpv4(std::string_view("1.2.3.4\0x", 9)));
}

TEST_F(NetlinkTest, APairReachesIntoAnotherNamespace) {
  ASSERT_TRUE(here_->makeVeth("v7", "eth0", other_));
  EXPECT_THAT(*here_->links(), UnorderedElementsAre("lo", "v7"));
  EXPECT_THAT(*inside_->links(), UnorderedElementsAre("lo", "eth0"));
  const auto twice = here_->makeVeth("v7", "eth1", other_);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::kConflict);
  ASSERT_TRUE(here_->removeLink("v7"));
  EXPECT_THAT(*inside_->links(), ElementsAre("lo"));
  EXPECT_EQ(here_->removeLink("v7").error().code, Code::kNotFound);
}

TEST_F(NetlinkTest, AddressesAndRoutes) {
  ASSERT_TRUE(here_->makeVeth("v7", "eth0", other_));
  ASSERT_TRUE(here_->addAddress("v7", kNear, 31));
  ASSERT_TRUE(here_->setUp("v7"));
  EXPECT_THAT(*inside_->defaultRouteLinks(), IsEmpty());
  ASSERT_TRUE(inside_->addAddress("eth0", kFar, 31));
  ASSERT_TRUE(inside_->setUp("eth0"));
  ASSERT_TRUE(inside_->addDefaultRoute(kNear));
  EXPECT_THAT(*inside_->defaultRouteLinks(), ElementsAre("eth0"));
  EXPECT_THAT(*inside_->addresses(), Contains(kFar));
  EXPECT_FALSE(inside_->addDefaultRoute(Ipv4{0x01020304})) << "there is no way to that gateway";
  EXPECT_EQ(here_->addAddress("nothing", kNear, 31).error().code, Code::kNotFound);
  const auto traffic = here_->traffic("v7");
  ASSERT_TRUE(traffic) << traffic.error().message;
}

// Without the wait it is the first packet that is lost, some of the times.
TEST_F(NetlinkTest, WhatIsSentOverALinkThatCarriesArrives) {
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(here_->makeVeth("v7", "eth0", other_));
    ASSERT_TRUE(here_->addAddress("v7", kNear, 31));
    ASSERT_TRUE(here_->setUp("v7"));
    ASSERT_TRUE(inside_->addAddress("eth0", kFar, 31));
    ASSERT_TRUE(inside_->setUp("eth0"));
    const auto carries = here_->awaitCarrying("v7");
    ASSERT_TRUE(carries) << carries.error().message;
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(9);
    to.sin_addr.s_addr = htonl(kFar.number);
    ASSERT_EQ(::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
              1);
    EXPECT_GT(here_->traffic("v7")->sentBytes, 0U) << "the question for the neighbour at least";
    ASSERT_TRUE(here_->removeLink("v7"));
  }
}

TEST_F(NetlinkTest, ABridgeHasPorts) {
  ASSERT_TRUE(here_->makeBridge("g0"));
  ASSERT_TRUE(here_->makeVeth("w1", "eth0", other_));
  ASSERT_TRUE(here_->setMaster("w1", "g0"));
  EXPECT_FALSE(here_->setMaster("w1", "lo")) << "lo is no bridge";
  ASSERT_TRUE(here_->removeLink("g0"));
  EXPECT_THAT(*here_->links(), UnorderedElementsAre("lo", "w1"));
}

}  // namespace
}  // namespace cay::sys
