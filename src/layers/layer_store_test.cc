#include "layers/layer_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <latch>
#include <thread>

#include "base/tar_fixture.h"
#include "layers/digest.h"
#include "sys/file.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class LayerStoreTest : public ::testing::Test {
 protected:
  Result<LayerStore::Added> add(const std::string& tar, std::string_view diffId) {
    CAY_ASSIGN(const Fd file, sys::memoryFile("tar", tar));
    return store_.add(file.get(), diffId);
  }
  size_t entriesIn(const char* folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temp_.path() / folder), {}));
  }

  cay::testing::TempDir temp_;
  LayerStore store_{temp_.path().string(), ::geteuid() == 0 ? Owners::kKept : Owners::kOwn};
  const std::string tar_ = TarBuilder().file("d/f", "content").done();
  const std::string diffId_ = digestOf(tar_);
};

TEST_F(LayerStoreTest, AddsWhatHasTheRightDigest) {
  EXPECT_FALSE(store_.has(diffId_));
  const auto added = add(tar_, diffId_);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->diffId, diffId_);
  EXPECT_EQ(added->bytes, tar_.size());
  EXPECT_TRUE(store_.has(diffId_));
  EXPECT_TRUE(fs::exists(fs::path(store_.path(diffId_)) / "d/f"));
  EXPECT_EQ(entriesIn("new"), 0U);
  const auto again = add(tar_, "");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->diffId, diffId_);
  EXPECT_EQ(entriesIn("layers"), 1U);
  EXPECT_EQ(entriesIn("new"), 0U);
}

TEST_F(LayerStoreTest, WhatIsWrongLeavesNothing) {
  const std::string other = digestOf("something else");
  EXPECT_THAT(add(tar_, other).error().message, HasSubstr(other));
  EXPECT_FALSE(store_.has(other));
  const std::string evil = TarBuilder().file("ok", "").file("../x", "").done();
  EXPECT_THAT(add(evil, digestOf(evil)).error().message, HasSubstr("'..'"));
  const std::string cut = tar_.substr(0, 700);
  EXPECT_THAT(add(cut, digestOf(cut)).error().message, HasSubstr("cut off"));
  EXPECT_THAT(add(tar_, "sha256:../../etc").error().message, HasSubstr("not a digest"));
  EXPECT_FALSE(store_.has("sha256:.."));
  EXPECT_FALSE(fs::exists(temp_.path() / "layers"));
  EXPECT_EQ(entriesIn("new"), 0U);
}

TEST_F(LayerStoreTest, ManyMayAddTheSameAtOnce) {
  constexpr int kThreads = 8;
  std::latch start(kThreads);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      const auto added = add(tar_, diffId_);
      EXPECT_TRUE(added) << added.error().message;
    });
  }
  threads.clear();
  EXPECT_TRUE(store_.has(diffId_));
  EXPECT_EQ(entriesIn("layers"), 1U);
  EXPECT_EQ(entriesIn("new"), 0U);
}

TEST_F(LayerStoreTest, RemovesTheOthersAndWhatKilledOnesLeft) {
  ASSERT_TRUE(add(tar_, diffId_));
  const auto other = add(TarBuilder().file("g", "").done(), "");
  ASSERT_TRUE(other);
  // One that somebody is filling, and one that nobody will finish.
  fs::create_directories(temp_.path() / "new/busy");
  fs::create_directories(temp_.path() / "new/left/deep");
  const auto busy = sys::openAt(AT_FDCWD, (temp_.path() / "new/busy").c_str(), O_RDONLY);
  ASSERT_TRUE(*sys::tryLockFd(busy->get(), sys::Lock::kExclusive));
  const auto removed = store_.removeExcept({diffId_});
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 1U);
  EXPECT_TRUE(store_.has(diffId_));
  EXPECT_FALSE(store_.has(other->diffId));
  EXPECT_TRUE(fs::exists(temp_.path() / "new/busy"));
  EXPECT_EQ(entriesIn("new"), 1U);
}

}  // namespace
}  // namespace cay::layers
