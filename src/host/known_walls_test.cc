#include "host/known_walls.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace cay::host {
namespace {

using isolation::Mode;
using isolation::Verdict;

constexpr int64_t kNow = 5'000;
constexpr int64_t kHour = 3'600'000;
const isolation::Facts kFacts{.memoryGroup = true,
                              .pidsGroup = true,
                              .cpuGroup = true,
                              .diskLimited = false,
                              .whyNoGroups = {}};

isolation::Wall wall(const char* name, Verdict verdict = Verdict::kHeld) {
  return {.name = name, .verdict = verdict, .why = "tried", .remedy = ""};
}

WallTable standing() {
  return {.host = {wall("pid"), wall("network", Verdict::kWeaker), wall("disk", Verdict::kWeaker)},
          .none = {wall("pid"), wall("network"), wall("disk", Verdict::kWeaker)},
          .limitedDisk = wall("disk")};
}

class KnownWallsTest : public ::testing::Test {
 protected:
  [[nodiscard]] KnownWalls known(Mode mode = Mode::kFull,
                                 const isolation::Facts& facts = kFacts) const {
    return {file_, mode, facts};
  }
  std::optional<WallTable> afterRemembering(const WallTable& table) {
    EXPECT_TRUE(known().remember(table, kNow));
    return known().recall(kNow);
  }

  const testing::TempDir dir_;
  const std::string file_ = dir_.path() / "walls.json";
};

TEST_F(KnownWallsTest, NobodyHasTried) {
  EXPECT_EQ(known().recall(kNow), std::nullopt);
}

TEST_F(KnownWallsTest, WhatStandsIsToldToTheNext) {
  EXPECT_EQ(afterRemembering(standing()), standing());
}

TEST_F(KnownWallsTest, OtherCircumstancesAreTriedAnew) {
  ASSERT_EQ(afterRemembering(standing()), standing());
  EXPECT_EQ(known(Mode::kUnprivileged).recall(kNow), std::nullopt);
  isolation::Facts noMemory = kFacts;
  noMemory.memoryGroup = false;
  EXPECT_EQ(known(Mode::kFull, noMemory).recall(kNow), std::nullopt);
}

TEST_F(KnownWallsTest, NothingIsBelievedForLongerThanAnHour) {
  ASSERT_EQ(afterRemembering(standing()), standing());
  EXPECT_EQ(known().recall(kNow + kHour - 1), standing());
  EXPECT_EQ(known().recall(kNow + kHour), std::nullopt);
  EXPECT_EQ(known().recall(kNow - 1), std::nullopt) << "it comes from the future";
}

TEST_F(KnownWallsTest, AWallThatIsDownIsTriedAgain) {
  WallTable table = standing();
  table.host[0].verdict = Verdict::kWeaker;
  EXPECT_EQ(afterRemembering(table), std::nullopt);
  table = standing();
  table.none[1].verdict = Verdict::kAbsent;
  EXPECT_EQ(afterRemembering(table), std::nullopt);
  table = standing();
  table.limitedDisk.verdict = Verdict::kAbsent;
  EXPECT_EQ(afterRemembering(table), std::nullopt);
}

TEST_F(KnownWallsTest, ABrokenNoteIsNone) {
  for (const char* text : {"", "{", "[]", "{}", R"({"tried":{},"tried_at_ms":1})"}) {
    (void)dir_.write("walls.json", text);
    EXPECT_EQ(known().recall(kNow), std::nullopt) << text;
  }
  EXPECT_EQ(afterRemembering(standing()), standing()) << "and is written anew";
}

TEST_F(KnownWallsTest, WithoutAFileNothingIsRemembered) {
  const KnownWalls none("", Mode::kFull, kFacts);
  EXPECT_TRUE(none.remember(standing(), kNow));
  EXPECT_EQ(none.recall(kNow), std::nullopt);
}

}  // namespace
}  // namespace cay::host
