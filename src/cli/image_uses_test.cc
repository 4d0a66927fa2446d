#include "cli/image_uses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sandbox/pool_record.h"
#include "testing/temp_dir.h"

namespace cay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ImageUsesTest : public ::testing::Test {
 protected:
  void job(const std::string& id, const std::string& record) {
    std::filesystem::create_directories(temp_.path() / "sandboxes/sandboxes" / id);
    (void)temp_.write("sandboxes/sandboxes/" + id + "/record.json", record);
  }

  cay::testing::TempDir temp_;
  const hub::Paths paths_{temp_.path().string()};
};

TEST_F(ImageUsesTest, AreInTheRecordsOfJobs) {
  EXPECT_THAT(imagesOfJobs(paths_).value(), IsEmpty());
  sandbox::PoolRecord record;
  record.id = "abc";
  record.token = std::string(64, 'a');
  record.spec = std::make_shared<sandbox::PoolSpec>();
  record.imageVersion = "sha256:one";
  job("abc", sandbox::recordText(record));
  record.imageVersion = "sha256:two";
  job("def", sandbox::recordText(record));
  std::filesystem::create_directories(temp_.path() / "sandboxes/sandboxes/going");
  const auto uses = imagesOfJobs(paths_);
  ASSERT_TRUE(uses) << uses.error().message;
  EXPECT_THAT(*uses, ElementsAre("sha256:one", "sha256:two"));
}

TEST_F(ImageUsesTest, WhatCannotBeReadStopsRemoval) {
  job("abc", "{");
  const auto uses = imagesOfJobs(paths_);
  ASSERT_FALSE(uses);
  EXPECT_THAT(uses.error().message, HasSubstr("nothing was removed"));
}

}  // namespace
}  // namespace cay::cli
