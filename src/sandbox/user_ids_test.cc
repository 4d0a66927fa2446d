#include "sandbox/user_ids.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/ids.h"

namespace cay::sandbox {
namespace {

using isolation::Mode;

TEST(UserIds, RangesOfSandboxesNeverOverlap) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has one id";
  const UserIds full = UserIds::choose(Mode::kFull, newId("cay"));
  EXPECT_EQ(full.first(1) - full.first(0), full.count);
  EXPECT_LE(uint64_t{full.first(full.slots - 1)} + full.count, uint64_t{1} << 31);
  const UserIds restricted = UserIds::choose(Mode::kRestricted, newId("cay"));
  EXPECT_EQ(restricted.first(5) - restricted.first(4), 1U);
  EXPECT_LE(restricted.first(restricted.slots - 1), full.first(0));
}

TEST(UserIds, TwoHostsDifferAndEachStaysTheSame) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user has one id";
  const UserIds one = UserIds::choose(Mode::kRestricted, "cay-0000000000000001");
  const UserIds two = UserIds::choose(Mode::kRestricted, "cay-0000000000000002");
  EXPECT_EQ(UserIds::choose(Mode::kRestricted, "cay-0000000000000001").base, one.base);
  if (one.base == 20'000) GTEST_SKIP() << "there are too few ids here";
  EXPECT_GE(two.base, one.base + one.slots);
}

TEST(UserIds, AnOrdinaryUserHasItsOwn) {
  const UserIds own = UserIds::choose(Mode::kUnprivileged, newId("cay"));
  EXPECT_EQ(own.first(0), ::geteuid());
  EXPECT_EQ(own.first(7), ::geteuid());
  EXPECT_TRUE(own.isOwn());
}

}  // namespace
}  // namespace cay::sandbox
