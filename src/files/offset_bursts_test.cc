#include "files/offset_bursts.h"

#include <gtest/gtest.h>

namespace cay::files {
namespace {

constexpr uint64_t kMiB = uint64_t{1024} * 1024;
const FileKey kFile{.device = 1, .inode = 2};

// One client that writes ranges of one file; the clock moves only when told to.
class Uploads : public ::testing::Test {
 protected:
  void begin() { bursts_.begin(kFile, now_); }
  std::optional<uint64_t> end(uint64_t fromMiB, uint64_t toMiB) {
    bursts_.wrote(kFile, fromMiB * kMiB, toMiB * kMiB);
    return bursts_.finish(kFile, now_);
  }
  // A range while no other is being written.
  std::optional<uint64_t> lone(uint64_t fromMiB, uint64_t toMiB) {
    begin();
    return end(fromMiB, toMiB);
  }
  // All ranges of an upload at once, as its client sends them; the answers come in order.
  std::optional<uint64_t> parallel(uint64_t totalMiB) {
    for (uint64_t i = 0; i < totalMiB; ++i) begin();
    std::optional<uint64_t> last;
    for (uint64_t i = 0; i < totalMiB; ++i) last = end(i, i + 1);
    return last;
  }

  OffsetBursts bursts_;
  int64_t now_ = 5'000'000;
};

TEST_F(Uploads, ShrinkWhenTheRecordedOrderTiles) {
  EXPECT_EQ(lone(1, 2), std::nullopt);
  EXPECT_EQ(lone(0, 1), 2 * kMiB);
  EXPECT_EQ(lone(3, 4), std::nullopt);
  EXPECT_EQ(lone(2, 3),
            std::nullopt);  // the old tail went with the prefix; there is nothing to cut
}

TEST_F(Uploads, ShrinkOnlyWhenNothingIsBeingWritten) {
  begin();
  begin();
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(end(1, 2), 2 * kMiB);
}

TEST_F(Uploads, ShrinkOnceForTheRecordedOrderInParallel) {
  for (int i = 0; i < 4; ++i) begin();
  EXPECT_EQ(end(1, 2), std::nullopt);
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(end(3, 4), std::nullopt);
  EXPECT_EQ(end(2, 3), 4 * kMiB);
}

TEST_F(Uploads, ALoneRangeAtZeroTruncatesAndElsewhereNever) {
  EXPECT_EQ(lone(0, 1), kMiB);
  EXPECT_EQ(lone(5, 6), std::nullopt);
  now_ += 10'000;
  EXPECT_EQ(lone(1, 2), std::nullopt);
}

TEST_F(Uploads, NothingAtZeroEmptiesTheFile) {
  begin();
  bursts_.wrote(kFile, 0, 0);
  EXPECT_EQ(bursts_.finish(kFile, now_), 0U);
  begin();
  bursts_.wrote(kFile, 7, 7);
  EXPECT_EQ(bursts_.finish(kFile, now_), std::nullopt);
}

TEST_F(Uploads, AShorterOneRightAfterALongerOneIsCut) {
  EXPECT_EQ(parallel(5), 5 * kMiB);
  EXPECT_EQ(parallel(3), 3 * kMiB);
}

TEST_F(Uploads, ALongerOneRightAfterAShorterOneKeepsAllItHasWritten) {
  EXPECT_EQ(parallel(3), 3 * kMiB);
  // Its last ranges come first, alone.
  EXPECT_EQ(lone(3, 4), std::nullopt);
  EXPECT_EQ(lone(4, 5), std::nullopt);
  begin();
  begin();
  begin();
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(end(2, 3), std::nullopt);
  EXPECT_EQ(end(1, 2), 5 * kMiB);
}

TEST_F(Uploads, AFinishedPrefixDoesNotPoisonALaterUpload) {
  // An upload that stopped half way, then silence.
  EXPECT_EQ(lone(1, 2), std::nullopt);
  EXPECT_EQ(lone(2, 3), std::nullopt);
  now_ += OffsetBursts::kExpiryMs;
  // Its ranges are forgotten: the next range at 0 stands alone.
  EXPECT_EQ(lone(0, 1), kMiB);
}

TEST_F(Uploads, RangesDoNotExpireWhileOneIsBeingWritten) {
  begin();
  begin();
  EXPECT_EQ(end(1, 2), std::nullopt);
  now_ += 60'000;
  begin();
  EXPECT_EQ(end(2, 3), std::nullopt);
  EXPECT_EQ(end(0, 1), 3 * kMiB);
}

TEST_F(Uploads, AreExemptOnceTruncateToWasSeen) {
  begin();
  EXPECT_EQ(end(0, 1), kMiB);
  begin();
  bursts_.exempt(kFile);
  EXPECT_EQ(end(4, 5), std::nullopt);
  EXPECT_EQ(lone(0, 1), std::nullopt);
  now_ += 10 * OffsetBursts::kExpiryMs;
  EXPECT_EQ(parallel(3), std::nullopt);
  EXPECT_FALSE(bursts_.shouldLinger(kFile));
}

TEST_F(Uploads, AreNotCutAfterARangeWasGivenUp) {
  begin();
  begin();
  bursts_.abandon(kFile, now_);
  EXPECT_EQ(end(0, 1), std::nullopt);
  EXPECT_EQ(parallel(2), std::nullopt);
  now_ += OffsetBursts::kExpiryMs;
  EXPECT_EQ(parallel(2), 2 * kMiB);
}

TEST_F(Uploads, LingerOnlyWhereTheEndOfABurstIsPossible) {
  begin();
  bursts_.wrote(kFile, kMiB, 2 * kMiB);
  EXPECT_FALSE(bursts_.shouldLinger(kFile));  // does not begin at 0
  begin();
  bursts_.wrote(kFile, 0, kMiB);
  EXPECT_FALSE(bursts_.shouldLinger(kFile));  // another one is being written
  EXPECT_EQ(bursts_.finish(kFile, now_), std::nullopt);
  EXPECT_TRUE(bursts_.shouldLinger(kFile));
  begin();  // the next range begins while the last one lingers
  EXPECT_FALSE(bursts_.shouldLinger(kFile));
}

TEST_F(Uploads, OverlapsAndHolesAreSeen) {
  for (int i = 0; i < 4; ++i) begin();
  EXPECT_EQ(end(0, 2), std::nullopt);
  EXPECT_EQ(end(1, 3), std::nullopt);
  EXPECT_EQ(end(5, 6), std::nullopt);
  EXPECT_EQ(end(4, 5), std::nullopt);  // [3, 4) is missing
  EXPECT_EQ(lone(3, 4), 6 * kMiB);
}

TEST_F(Uploads, MemoryIsBounded) {
  for (uint64_t i = 0; i < 3 * OffsetBursts::kMaxPieces; ++i) {
    begin();
    bursts_.wrote(kFile, 2 * i + 1, 2 * i + 2);
    EXPECT_EQ(bursts_.finish(kFile, now_), std::nullopt);
  }
  for (ino_t i = 0; i < 3 * OffsetBursts::kMaxFiles; ++i) {
    const FileKey other{.device = 1, .inode = 100 + i};
    bursts_.begin(other, now_);
    bursts_.exempt(other);
    EXPECT_EQ(bursts_.finish(other, ++now_), std::nullopt);
  }
  EXPECT_LE(bursts_.files(), OffsetBursts::kMaxFiles);
}

}  // namespace
}  // namespace cay::files
