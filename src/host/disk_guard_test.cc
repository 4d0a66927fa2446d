#include "host/disk_guard.h"

#include <gtest/gtest.h>

namespace cay::host {
namespace {

TEST(DiskGuard, BlamesTheLargestOnlyIfItMatters) {
  EXPECT_EQ(culpritAmong({}, 10), std::nullopt);
  EXPECT_EQ(culpritAmong({{.index = 0, .bytes = 5}, {.index = 1, .bytes = 9}}, 10), std::nullopt);
  EXPECT_EQ(culpritAmong({{.index = 0, .bytes = 50}, {.index = 3, .bytes = 90}}, 10), 3U);
}

TEST(DiskGuard, TooManyFilesToCountAreMany) {
  EXPECT_EQ(culpritAmong({{.index = 0, .bytes = 1U << 30}, {.index = 1, .bytes = {}}}, 10), 1U);
}

}  // namespace
}  // namespace cay::host
