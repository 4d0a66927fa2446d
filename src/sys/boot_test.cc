#include "sys/boot.h"

#include <gtest/gtest.h>

namespace cay::sys {
namespace {

TEST(Boot, HasOneNameWhichIsAUuid) {
  const auto id = bootId();
  ASSERT_TRUE(id);
  EXPECT_EQ(id->size(), 36U) << *id;
  EXPECT_EQ(bootId().value(), *id);
}

}  // namespace
}  // namespace cay::sys
