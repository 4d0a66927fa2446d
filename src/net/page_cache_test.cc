#include "net/page_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "testing/temp_dir.h"

namespace cay::net {
namespace {

constexpr size_t kSize = size_t{4} << 20;

TEST(PageCache, WhatWasReadInIsCached) {
  const testing::TempDir folder;
  const Fd file(::open(folder.write("data", std::string(kSize, 'x')).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::fsync(file.get()), 0);
  ASSERT_EQ(::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED), 0);
  // File systems in memory keep it in spite of that, so nothing can be said about now.
  (void)isCached(file.get(), 0, kSize);
  const Fd own = duplicate(file.get());
  ASSERT_TRUE(own.valid());
  std::thread([&] { readIn(own.get(), 0, kSize); }).join();
  EXPECT_TRUE(isCached(file.get(), 0, kSize));
  EXPECT_TRUE(isCached(file.get(), 12'345, 1));
}

TEST(PageCache, KnowsNoLimitsAndNoBadFiles) {
  const testing::TempDir folder;
  const Fd file(::open(folder.write("data", "short").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(isCached(file.get(), 0, 0));
  // Past the end there is nothing to wait for.
  EXPECT_TRUE(isCached(file.get(), kSize, kSize));
  readIn(file.get(), 0, kSize);
  readIn(-1, 0, kSize);
}

}  // namespace
}  // namespace cay::net
