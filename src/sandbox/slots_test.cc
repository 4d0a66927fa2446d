#include "sandbox/slots.h"

#include <gtest/gtest.h>

namespace cay::sandbox {
namespace {

TEST(Slots, TheLowestFreeOneComesFirst) {
  Slots slots(4);
  EXPECT_EQ(slots.take(), 0);
  EXPECT_EQ(slots.take(), 1);
  EXPECT_EQ(slots.take(), 2);
  slots.release(0);
  slots.release(1);
  EXPECT_EQ(slots.take(), 0);
  EXPECT_EQ(slots.take(), 1);
  EXPECT_EQ(slots.take(), 3);
  EXPECT_EQ(slots.take(), std::nullopt);
  slots.release(2);
  EXPECT_EQ(slots.take(), 2);
}

TEST(Slots, ThoseFromBeforeARestartAreNotGivenOutAgain) {
  Slots slots(10);
  EXPECT_TRUE(slots.claim(3));
  EXPECT_TRUE(slots.claim(1));
  EXPECT_FALSE(slots.claim(3)) << "two sandboxes with the same user ids";
  EXPECT_FALSE(slots.claim(10));
  EXPECT_EQ(slots.take(), 0);
  EXPECT_EQ(slots.take(), 2);
  EXPECT_EQ(slots.take(), 4);
}

TEST(Slots, ManyTurnsLeaveNothingBehind) {
  Slots slots(2);
  for (int i = 0; i < 100'000; ++i) {
    const auto slot = slots.take();
    ASSERT_EQ(slot, 0);
    slots.release(*slot);
  }
  EXPECT_EQ(slots.take(), 0);
}

}  // namespace
}  // namespace cay::sandbox
