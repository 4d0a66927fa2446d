#include "engine/address_plan.h"

#include <gtest/gtest.h>

#include <set>

namespace cay::engine {
namespace {

constexpr uint32_t kOwnFirst = 0x64400000;  // 100.64.0.0/10
constexpr uint32_t kOwnLast = 0x647fffff;

TEST(AddressPlanTest, IsWhatTheHeaderSays) {
  EXPECT_EQ(uplinkAddresses(0).near.text(), "100.64.0.1");
  EXPECT_EQ(uplinkAddresses(1).far.text(), "100.64.0.6");
  EXPECT_EQ(aloneAddresses(0).near.text(), "100.65.0.0");
  EXPECT_EQ(aloneAddresses(2).far.text(), "100.65.0.5");
  EXPECT_EQ(memberAddresses(1, 0).near.text(), "100.96.1.1");
  EXPECT_EQ(memberAddresses(1, 0).far.text(), "100.96.1.2");
}

TEST(AddressPlanTest, NoAddressIsGivenTwice) {
  std::set<uint32_t> seen;
  const auto add = [&](sys::Ipv4 address) {
    EXPECT_GE(address.number, kOwnFirst);
    EXPECT_LE(address.number, kOwnLast);
    EXPECT_TRUE(seen.insert(address.number).second) << address.text();
  };
  for (uint32_t i = 0; i < kMaxUplinks; ++i) {
    add(uplinkAddresses(i).near);
    add(uplinkAddresses(i).far);
  }
  for (uint32_t i = 0; i < kMaxNetworks; ++i) {
    add(aloneAddresses(i).near);
    add(aloneAddresses(i).far);
  }
  for (const uint32_t group : {0U, 1U, kMaxGroups - 1}) {
    add(memberAddresses(group, 0).near);
    for (uint32_t i = 0; i < kMaxMembers; ++i) add(memberAddresses(group, i).far);
  }
}

TEST(AddressPlanTest, MembersStayInTheNetworkOfTheirGroup) {
  for (const uint32_t group : {0U, 77U, kMaxGroups - 1}) {
    const uint32_t network = memberAddresses(group, 0).near.number >> 8;
    EXPECT_EQ(memberAddresses(group, kMaxMembers - 1).far.number >> 8, network);
    EXPECT_LT(memberAddresses(group, kMaxMembers - 1).far.number & 0xff, 0xffU) << "broadcast";
  }
}

}  // namespace
}  // namespace cay::engine
