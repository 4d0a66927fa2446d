#include "layers/image_store.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

TEST(ImageStore, AnImageThatIsGivenStandsForTheMachines) {
  const testing::TempDir dir;
  const Image given{.name = "python:3.12",
                    .version = "sha256:" + std::string(64, 'a'),
                    .overlays = {{.at = "/", .lowers = {"/l/2", "/l/1"}}},
                    .config = {.env = {"A=b"}}};
  ImageStore images({.folder = dir.path(),
                     .roots = {},
                     .mode = isolation::Mode::kFull,
                     .machine = dir.path() / "none",
                     .given = given});
  EXPECT_TRUE(images.refresh());
  for (const char* name : {"", "host", "python:3.12"}) {
    EXPECT_EQ(images.resolve(name).value(), given) << name;
    EXPECT_EQ(images.restore(name, given.version).value(), given) << name;
  }
  EXPECT_FALSE(images.resolve("debian"));
  // A sandbox of another version does not become one of this.
  EXPECT_FALSE(images.restore("", "sha256:" + std::string(64, 'b')));
  images.removeUnused({});
  EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << "nothing was prepared";
}

}  // namespace
}  // namespace cay::layers
