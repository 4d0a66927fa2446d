#include "files/offset_bursts.h"

#include <gtest/gtest.h>

#include <vector>

namespace cay::files {
namespace {

constexpr uint64_t kMiB = uint64_t{1024} * 1024;
const FileKey kFile{.device = 1, .inode = 2};

// Clients that write ranges of one file; the clock moves only when told to.
class Uploads : public ::testing::Test {
 protected:
  void begin(uint64_t fromMiB) { bursts_.begin(kFile, fromMiB * kMiB, now_); }
  std::optional<uint64_t> end(uint64_t fromMiB, uint64_t toMiB) {
    bursts_.wrote(kFile, fromMiB * kMiB, toMiB * kMiB);
    return bursts_.finish(kFile, now_);
  }
  // A range while no other is being written.
  std::optional<uint64_t> lone(uint64_t fromMiB, uint64_t toMiB) {
    begin(fromMiB);
    return end(fromMiB, toMiB);
  }
  // All ranges of an upload at once, as its client sends them.
  std::optional<uint64_t> parallel(const std::vector<uint64_t>& order) {
    for (const uint64_t i : order) begin(i);
    std::optional<uint64_t> last;
    for (const uint64_t i : order) last = end(i, i + 1);
    return last;
  }

  OffsetBursts bursts_;
  int64_t now_ = 5'000'000;
};

TEST_F(Uploads, ShrinkWhenTheRecordedOrderTiles) {
  EXPECT_EQ(lone(1, 2), std::nullopt);
  EXPECT_EQ(lone(0, 1), 2 * kMiB);
  EXPECT_EQ(lone(3, 4), std::nullopt);
  EXPECT_EQ(lone(2, 3), 4 * kMiB);
}

TEST_F(Uploads, ShrinkOnlyWhenNothingIsBeingWritten) {
  EXPECT_EQ(parallel({1, 0, 3, 2}), 4 * kMiB);
  begin(0);
  begin(1);
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(end(1, 2), 2 * kMiB);
}

TEST_F(Uploads, ALoneRangeAtZeroTruncatesAndElsewhereNever) {
  EXPECT_EQ(lone(0, 1), kMiB);
  EXPECT_EQ(lone(5, 6), std::nullopt);
  now_ += 10'000;
  EXPECT_EQ(lone(1, 2), std::nullopt);
}

TEST_F(Uploads, NothingAtZeroEmptiesTheFile) {
  EXPECT_EQ(lone(0, 0), 0U);
  EXPECT_EQ(lone(7, 7), std::nullopt);
}

TEST_F(Uploads, AShorterOneRightAfterALongerOneIsCut) {
  EXPECT_EQ(parallel({0, 1, 2, 3, 4}), 5 * kMiB);
  EXPECT_EQ(parallel({2, 0, 1}), 3 * kMiB);
  // Also if the longer one had paused in the middle.
  EXPECT_EQ(parallel({1, 0, 2}), 3 * kMiB);
  EXPECT_EQ(parallel({3, 4, 5, 6}), 7 * kMiB);
  EXPECT_EQ(parallel({1, 0}), 2 * kMiB);
  // Or if both come one range after the other.
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(lone(i, i + 1), (i + 1) * kMiB);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(lone(i, i + 1), (i + 1) * kMiB);
}

TEST_F(Uploads, ALongerOneRightAfterAShorterOneKeepsAllItHasWritten) {
  EXPECT_EQ(parallel({0, 1, 2}), 3 * kMiB);
  EXPECT_EQ(lone(4, 5), std::nullopt);  // its last range comes first, and alone
  EXPECT_EQ(parallel({0, 2, 1}), std::nullopt);
  EXPECT_EQ(lone(3, 4), 5 * kMiB);

  EXPECT_EQ(parallel({0, 1, 2}), 3 * kMiB);
  begin(3);  // what looks like the rest of the last upload is still there when the others begin
  bursts_.wrote(kFile, 3 * kMiB, 4 * kMiB);
  EXPECT_TRUE(bursts_.shouldLinger(kFile));
  begin(0);
  begin(1);
  begin(2);
  EXPECT_EQ(bursts_.finish(kFile, now_), std::nullopt);
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(end(1, 2), std::nullopt);
  EXPECT_EQ(end(2, 3), 4 * kMiB);
}

TEST_F(Uploads, RangesOfAnUploadThatStoppedHalfWayDoNotPoisonALaterOne) {
  EXPECT_EQ(lone(1, 2), std::nullopt);
  EXPECT_EQ(lone(2, 3), std::nullopt);
  now_ += OffsetBursts::kExpiryMs;
  EXPECT_EQ(lone(0, 1), kMiB);
}

TEST_F(Uploads, RangesDoNotExpireWhileOneIsBeingWritten) {
  begin(0);
  begin(1);
  EXPECT_EQ(end(1, 2), std::nullopt);
  now_ += 60'000;
  begin(2);
  EXPECT_EQ(end(2, 3), std::nullopt);
  EXPECT_EQ(end(0, 1), 3 * kMiB);
}

TEST_F(Uploads, AreExemptOnceTruncateToWasSeen) {
  EXPECT_EQ(lone(0, 1), kMiB);
  begin(4);
  bursts_.exempt(kFile);
  EXPECT_EQ(end(4, 5), std::nullopt);
  EXPECT_EQ(lone(0, 1), std::nullopt);
  now_ += 10 * OffsetBursts::kExpiryMs;
  EXPECT_EQ(parallel({0, 1, 2}), std::nullopt);
  EXPECT_FALSE(bursts_.shouldLinger(kFile));
}

TEST_F(Uploads, AreNotCutAfterARangeWasGivenUp) {
  begin(0);
  begin(1);
  bursts_.abandon(kFile, now_);
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(parallel({0, 1}), std::nullopt);
  now_ += OffsetBursts::kExpiryMs;
  EXPECT_EQ(parallel({0, 1}), 2 * kMiB);
}

TEST_F(Uploads, LingerOnlyWhereTheEndOfABurstIsPossible) {
  begin(1);
  bursts_.wrote(kFile, kMiB, 2 * kMiB);
  EXPECT_FALSE(bursts_.shouldLinger(kFile));  // does not begin at 0
  begin(0);
  bursts_.wrote(kFile, 0, kMiB);
  EXPECT_FALSE(bursts_.shouldLinger(kFile));  // another one is being written
  EXPECT_EQ(bursts_.finish(kFile, now_), std::nullopt);
  EXPECT_TRUE(bursts_.shouldLinger(kFile));
  begin(2);  // the next range begins while the last one lingers
  EXPECT_FALSE(bursts_.shouldLinger(kFile));
}

TEST_F(Uploads, OverlapsAndHolesAreSeen) {
  for (const uint64_t i : {0, 1, 5, 4}) begin(i);
  EXPECT_EQ(end(0, 2), std::nullopt);
  EXPECT_EQ(end(1, 3), std::nullopt);
  EXPECT_EQ(end(5, 6), std::nullopt);
  EXPECT_EQ(end(4, 5), std::nullopt);  // [3, 4) is missing
  EXPECT_EQ(lone(3, 4), 6 * kMiB);
}

TEST_F(Uploads, MemoryIsBounded) {
  for (uint64_t i = 0; i < 3 * OffsetBursts::kMaxPieces; ++i) {
    bursts_.begin(kFile, 2 * i + 1, now_);
    bursts_.wrote(kFile, 2 * i + 1, 2 * i + 2);
    EXPECT_EQ(bursts_.finish(kFile, now_), std::nullopt);
  }
  for (ino_t i = 0; i < 3 * OffsetBursts::kMaxFiles; ++i) {
    const FileKey other{.device = 1, .inode = 100 + i};
    bursts_.begin(other, 0, now_);
    bursts_.exempt(other);
    EXPECT_EQ(bursts_.finish(other, ++now_), std::nullopt);
  }
  EXPECT_LE(bursts_.files(), OffsetBursts::kMaxFiles);
}

}  // namespace
}  // namespace cay::files
