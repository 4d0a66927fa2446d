#include "files/directories.h"

#include <sys/stat.h>
#include <unistd.h>

#include "files/place_fixture.h"

namespace cay::files {
namespace {

using DirectoriesTest = PlaceTest;

TEST_F(DirectoriesTest, MkdirMakesParentsAndIsFineWithWhatIsThere) {
  must(makeDirectory(*place_, "/tmp/a/b/c"));
  must(makeDirectory(*place_, "/tmp/a/b/c"));
  must(makeDirectory(*place_, "rel"));
  must(makeDirectory(*place_, "/"));
  fs::create_symlink("/tmp/a", root_ / "home/link");
  must(makeDirectory(*place_, "link/d"));
  EXPECT_TRUE(fs::is_directory(root_ / "tmp/a/b/c"));
  EXPECT_TRUE(fs::is_directory(root_ / "tmp/a/d"));
  EXPECT_TRUE(fs::is_directory(root_ / "home/rel"));
}

TEST_F(DirectoriesTest, MkdirOverAFileIsAConflict) {
  put(root_ / "tmp/f", "");
  fs::create_symlink("nowhere", root_ / "tmp/dangling");
  for (const char* path : {"/tmp/f", "/tmp/f/below", "/tmp/dangling", "/tmp/dangling/x"}) {
    const auto result = makeDirectory(*place_, path);
    ASSERT_FALSE(result) << path;
    EXPECT_EQ(result.error().code, Code::kConflict) << result.error().message;
  }
}

TEST_F(DirectoriesTest, MkdirStaysInTheRoot) {
  fs::create_symlink(outside_, root_ / "home/out");
  EXPECT_FALSE(makeDirectory(*place_, "out/made"));
  must(makeDirectory(*place_, "/../../made"));
  EXPECT_TRUE(fs::is_directory(root_ / "made"));
  EXPECT_EQ(entriesIn(outside_), 1U);
}

TEST_F(DirectoriesTest, RemoveTakesFilesLinksAndEmptyDirectories) {
  put(root_ / "tmp/f", "");
  fs::create_directory(root_ / "tmp/d");
  fs::create_symlink(outside_ / "secret", root_ / "tmp/link");
  fs::create_symlink("d", root_ / "tmp/dirlink");
  for (const char* path : {"/tmp/f", "/tmp/link", "/tmp/dirlink", "/tmp/d"}) {
    must(remove(*place_, path, Recursive::kNo));
  }
  EXPECT_EQ(entriesIn(root_ / "tmp"), 0U);
  EXPECT_EQ(entriesIn(outside_), 1U);
  EXPECT_EQ(remove(*place_, "/tmp/f", Recursive::kNo).error().code, Code::kNotFound);
}

TEST_F(DirectoriesTest, AFullDirectoryNeedsRecursive) {
  fs::create_directories(root_ / "tmp/d/e");
  put(root_ / "tmp/d/e/f", "");
  fs::create_symlink(outside_, root_ / "tmp/d/out");
  EXPECT_EQ(remove(*place_, "/tmp/d", Recursive::kNo).error().code, Code::kConflict);
  must(remove(*place_, "/tmp/d", Recursive::kYes));
  EXPECT_FALSE(fs::exists(root_ / "tmp/d"));
  EXPECT_TRUE(fs::exists(outside_ / "secret"));
}

TEST_F(DirectoriesTest, RootAndHomeAreNeverRemoved) {
  fs::create_directories(root_ / "deep/er/home");
  fs::create_symlink("er", root_ / "deep/link");
  const auto place = must(Place::create(openRoot(root_), "/deep/link/home"));
  for (const char* path :
       {"/", ".", "/deep/er/home", "/deep/er", "/deep", "/deep/../deep", "..", "/.."}) {
    for (const Recursive recursive : {Recursive::kNo, Recursive::kYes}) {
      const auto result = remove(*place, path, recursive);
      ASSERT_FALSE(result) << path;
      EXPECT_EQ(result.error().code, Code::kInvalid) << result.error().message;
    }
  }
  EXPECT_TRUE(fs::is_directory(root_ / "deep/er/home"));
}

TEST_F(DirectoriesTest, TreesOfAnyDepthAreRemoved) {
  fs::create_directory(root_ / "tmp/deep");
  Fd at = openRoot(root_ / "tmp/deep");
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "directory" + std::to_string(i % 10);
    must(sys::makeDirectoryAt(at.get(), name.c_str(), 0700));
    must(sys::openAt(at.get(), "file", O_CREAT | O_WRONLY, 0600));
    at = must(sys::openAt(at.get(), name.c_str(), O_PATH | O_DIRECTORY));
  }
  at.reset();
  must(remove(*place_, "/tmp/deep", Recursive::kYes));
  EXPECT_EQ(entriesIn(root_ / "tmp"), 0U);
}

}  // namespace
}  // namespace cay::files
