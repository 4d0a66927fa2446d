#include "isolation/walls.h"

#include <gtest/gtest.h>

namespace cay::isolation {
namespace {

TEST(Walls, VerdictsHaveNames) {
  EXPECT_EQ(verdictName(Verdict::kHeld), "held");
  EXPECT_EQ(verdictName(Verdict::kWeaker), "weaker");
  EXPECT_EQ(verdictName(Verdict::kAbsent), "absent");
}

}  // namespace
}  // namespace cay::isolation
