#include "engine/id_lease.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;

class IdLeaseTest : public ::testing::Test {
 protected:
  std::string state(const char* name) {
    fs::create_directories(dir_.path() / name);
    return dir_.path() / name;
  }
  Result<IdLease> take(const char* name) { return IdLease::take(folder_, state(name)); }
  void leaveSandbox(const char* name) {
    fs::create_directories(fs::path(state(name)) / "sandboxes/sandboxes/s1");
  }

  testing::TempDir dir_;
  const std::string folder_ = dir_.path() / "leases";
};

bool overlap(const sandbox::UserIds& a, const sandbox::UserIds& b) {
  const auto end = [](const sandbox::UserIds& ids) {
    return uint64_t{ids.base} + uint64_t{ids.slots} * ids.step;
  };
  return a.base < end(b) && b.base < end(a);
}

TEST_F(IdLeaseTest, NoTwoHubsShareIds) {
  const auto one = take("one");
  const auto two = take("two");
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(overlap(one->jobs(), two->jobs()));
  EXPECT_FALSE(overlap(one->pool(0, IdLease::kUnits), two->jobs()));
  EXPECT_FALSE(overlap(one->pool(0, IdLease::kUnits), one->jobs()));
  EXPECT_FALSE(overlap(one->pool(0, 2), one->pool(2, 1)));
  const auto host = sandbox::UserIds::choose(isolation::Mode::kFull, "cay-1");
  EXPECT_GE(one->jobs().base, host.base + 4096 * host.step) << "pools without a hub";
}

TEST_F(IdLeaseTest, AHubThatWasKilledKeepsItsOwn) {
  uint32_t number = 0;
  {
    const auto first = take("one");
    ASSERT_TRUE(first);
    number = first->number();
    leaveSandbox("one");
  }
  const auto other = take("two");
  ASSERT_TRUE(other);
  EXPECT_NE(other->number(), number) << "what it left running still has these ids";
  const auto again = take("one");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->number(), number);
}

TEST_F(IdLeaseTest, WhatAHubWithoutSandboxesHadIsFree) {
  uint32_t number = 0;
  {
    const auto first = take("one");
    ASSERT_TRUE(first);
    number = first->number();
    const auto meanwhile = take("two");
    ASSERT_TRUE(meanwhile);
    EXPECT_NE(meanwhile->number(), number) << "not while it runs";
  }
  const auto other = take("three");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->number(), number);
  const auto again = take("one");
  ASSERT_TRUE(again) << "another one";
  EXPECT_NE(again->number(), number);
}

TEST_F(IdLeaseTest, WhatBelongsToAStateThatIsGoneIsFree) {
  uint32_t number = 0;
  {
    const auto first = take("one");
    ASSERT_TRUE(first);
    number = first->number();
  }
  fs::remove_all(dir_.path() / "one");
  const auto other = take("two");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->number(), number);
}

TEST_F(IdLeaseTest, ThereIsAnEndToThem) {
  std::vector<IdLease> taken;
  for (int i = 0; i < 64; ++i) {
    auto lease = take(("s" + std::to_string(i)).c_str());
    if (!lease) {
      EXPECT_EQ(lease.error().code, Code::kExhausted);
      EXPECT_GE(taken.size(), 4U);
      return;
    }
    taken.push_back(*std::move(lease));
  }
  FAIL() << "more leases than ids";
}

TEST_F(IdLeaseTest, AFolderOfOthersIsNotTrusted) {
  fs::create_directories(folder_);
  fs::permissions(folder_, fs::perms{0777});
  EXPECT_FALSE(take("one"));
}

TEST(IdUnits, AreTakenInRows) {
  IdUnits units;
  EXPECT_EQ(IdUnits::unitsFor(1), 1U);
  EXPECT_EQ(IdUnits::unitsFor(64), 2U);
  EXPECT_EQ(units.take(2), 0U);
  EXPECT_EQ(units.take(1), 2U);
  units.release(0, 2);
  EXPECT_EQ(units.take(3), 3U);
  EXPECT_TRUE(units.claim(0, 2));
  EXPECT_FALSE(units.claim(1, 1));
  EXPECT_FALSE(units.claim(IdLease::kUnits - 1, 2));
  EXPECT_FALSE(units.take(IdLease::kUnits));
}

}  // namespace
}  // namespace cay::engine
