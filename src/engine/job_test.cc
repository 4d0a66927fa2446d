#include "engine/job.h"

#include <gtest/gtest.h>

namespace cay::engine {
namespace {

TEST(JobTest, StagesHaveTheNamesThatClientsKnow) {
  EXPECT_EQ(stageName(Stage::kScheduling), "SCHEDULING");
  EXPECT_EQ(stageName(Stage::kCanceled), "CANCELED");
  EXPECT_EQ(stageOf("ERROR"), Stage::kError);
  EXPECT_EQ(stageOf("error"), std::nullopt);
  EXPECT_EQ(stageOf(""), std::nullopt);
}

TEST(JobTest, StagesOnlyMoveForward) {
  EXPECT_TRUE(mayFollow(Stage::kScheduling, Stage::kRunning));
  EXPECT_TRUE(mayFollow(Stage::kScheduling, Stage::kError));
  EXPECT_TRUE(mayFollow(Stage::kScheduling, Stage::kCanceled));
  EXPECT_TRUE(mayFollow(Stage::kRunning, Stage::kCompleted));
  EXPECT_FALSE(mayFollow(Stage::kRunning, Stage::kScheduling));
  EXPECT_FALSE(mayFollow(Stage::kRunning, Stage::kRunning));
  EXPECT_FALSE(mayFollow(Stage::kCompleted, Stage::kError));
  EXPECT_FALSE(mayFollow(Stage::kCanceled, Stage::kCanceled));
}

}  // namespace
}  // namespace cay::engine
