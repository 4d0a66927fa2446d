// What the rules do is shown in networks_test.cc; here, that they are what nft understands and that
// nothing is left out.
#include "engine/router_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "engine/net_space.h"
#include "engine/tool.h"
#include "sys/namespaces.h"

namespace cay::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const RouterShape kWithoutWay{.way = {}, .mostConnections = 100, .mostOfOne = 10, .closed = {}};

RouterShape withWay() {
  return {.way = "up0",
          .mostConnections = 32'768,
          .mostOfOne = 2'048,
          .closed = {*sys::parseIpv4("192.0.2.2"), *sys::parseIpv4("10.0.0.1")}};
}

MachineShape machine() {
  return {.uplink = 3,
          .ways = {"eth0", "wlan0"},
          .opened = {"eth0"},
          .resolvers = {*sys::parseIpv4("192.0.2.2")}};
}

TEST(RouterRulesTest, ARouterDropsWhatItDoesNotKnow) {
  const std::string rules = routerRules(withWay());
  EXPECT_THAT(rules, HasSubstr("hook input priority 0; policy drop;"));
  EXPECT_THAT(rules, HasSubstr("hook forward priority 0; policy drop;"));
  EXPECT_THAT(rules, HasSubstr("169.254.0.0/16"));
  EXPECT_THAT(rules, HasSubstr("100.64.0.0/10"));
  EXPECT_THAT(rules, HasSubstr("ip daddr { 192.0.2.2, 10.0.0.1 } drop"));
  EXPECT_THAT(rules, HasSubstr("ct count over 32768 reject"));
  EXPECT_THAT(rules, HasSubstr("ip saddr ct count over 2048 } reject"));
  // Closed before it is accepted.
  EXPECT_LT(rules.find("169.254.0.0/16"), rules.find("iifname \"v*\" accept"));
}

TEST(RouterRulesTest, WithoutAWayOutNothingNewIsAccepted) {
  const std::string rules = routerRules(kWithoutWay);
  EXPECT_THAT(rules, Not(HasSubstr("masquerade")));
  EXPECT_THAT(rules, Not(HasSubstr("iifname")));
}

TEST(RouterRulesTest, TheMachineIsClosedToItsNetworks) {
  const std::string rules = machineRules(machine());
  EXPECT_THAT(rules, HasSubstr("table inet cay_uplink3 {"));
  EXPECT_THAT(rules, HasSubstr("iifname \"cayup3\" drop"));
  EXPECT_THAT(rules, HasSubstr("iifname \"cayup3\" fib daddr type { local,"));
  EXPECT_THAT(rules, HasSubstr("iifname \"cayup3\" ip saddr != 100.64.0.14 drop"));
  EXPECT_THAT(rules, HasSubstr("iifname \"cayup3\" oifname != { \"eth0\", \"wlan0\" } drop"));
  EXPECT_THAT(rules, HasSubstr("iifname { \"eth0\" } oifname != \"cayup*\" drop"));
  EXPECT_THAT(rules, HasSubstr("ip daddr { 192.0.2.2 } udp dport 53 accept"));
  EXPECT_THAT(rules, HasSubstr("ip saddr 100.64.0.14 counter name left masquerade"));
}

TEST(RouterRulesTest, ForwardingOfOthersIsNotTouched) {
  MachineShape shape = machine();
  shape.opened.clear();
  shape.resolvers.clear();
  const std::string rules = machineRules(shape);
  EXPECT_THAT(rules, Not(HasSubstr("oifname != \"cayup*\"")));
  EXPECT_THAT(rules, Not(HasSubstr("dport")));
}

TEST(RouterRulesTest, NftTakesThemAgainAndAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
  const auto ran = runInNetSpace(nullptr, [] {
    for (int i = 0; i < 2; ++i) {
      for (const std::string& rules :
           {routerRules(withWay()), routerRules(kWithoutWay), machineRules(machine())}) {
        const auto set = runTool("nft", {"-f", "-"}, rules);
        EXPECT_TRUE(set) << set.error().message << "\n" << rules;
      }
    }
    EXPECT_THAT(*runTool("nft", {"list", "tables"}), HasSubstr("cay_uplink3"));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(runTool("nft", {"-f", "-"}, withoutMachineRules(3)));
    EXPECT_THAT(*runTool("nft", {"list", "tables"}), Not(HasSubstr("cay_uplink3")));
  });
  EXPECT_TRUE(ran) << ran.error().message;
}

TEST(ToolTest, TellsWhatWentWrong) {
  const auto missing = runTool("no-such-tool", {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  const auto failed = runTool("cat", {"/no/such/file"});
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("No such file"));
  EXPECT_EQ(runTool("cat", {}, "as it is").value_or(""), "as it is");
}

}  // namespace
}  // namespace cay::engine
