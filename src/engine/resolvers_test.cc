#include "engine/resolvers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cay::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr sys::Ipv4 kFirst{0x0affff35};   // 10.255.255.53
constexpr sys::Ipv4 kSecond{0x08080808};  // 8.8.8.8

TEST(ResolversTest, ReadsNameServers) {
  EXPECT_THAT(nameServersIn("# nameserver 1.1.1.1\nsearch x\nnameserver 10.255.255.53\n"
                            "nameserver\t8.8.8.8 # comment\nnameserver ::1\nnameserver\n"
                            "nameservers 9.9.9.9\nnameserver 1.2.3\n"),
              ElementsAre(kFirst, kSecond));
  EXPECT_THAT(nameServersIn(""), IsEmpty());
}

TEST(ResolversTest, LeavesOutWhatJobsCannotReach) {
  const sys::Ipv4 stub = *sys::parseIpv4("127.0.0.53");
  const sys::Ipv4 nobody = *sys::parseIpv4("0.0.0.0");
  EXPECT_THAT(reachable({stub, nobody, kFirst, kSecond}, {kFirst}), ElementsAre(kSecond));
  EXPECT_THAT(reachable({stub}, {}), IsEmpty());
}

TEST(ResolversTest, TheUserMayNameAnAddressOfTheMachineButNotALoopback) {
  EXPECT_THAT(*parseResolvers({"10.255.255.53", "8.8.8.8"}), ElementsAre(kFirst, kSecond));
  for (const char* wrong : {"127.0.0.1", "127.0.0.53", "0.0.0.0", "dns.example", "::1", ""}) {
    const auto parsed = parseResolvers({wrong});
    ASSERT_FALSE(parsed) << wrong;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
  }
}

TEST(ResolversTest, WritesResolvConf) {
  EXPECT_EQ(resolvConfText({kFirst, kSecond}), "nameserver 10.255.255.53\nnameserver 8.8.8.8\n");
}

}  // namespace
}  // namespace cay::engine
