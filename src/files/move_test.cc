#include "files/move.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/ids.h"
#include "files/place_fixture.h"

namespace cay::files {
namespace {

using MoveTest = PlaceTest;

TEST_F(MoveTest, RenamesAndReplaces) {
  put(root_ / "tmp/a", "a");
  put(root_ / "tmp/b", "b");
  must(move(*place_, "/tmp/a", "/tmp/b"));
  EXPECT_EQ(get(root_ / "tmp/b"), "a");
  EXPECT_FALSE(fs::exists(root_ / "tmp/a"));
  must(move(*place_, "/tmp/b", "here"));
  EXPECT_EQ(get(root_ / "home/here"), "a");
  fs::create_directory(root_ / "tmp/d");
  put(root_ / "tmp/d/f", "f");
  must(move(*place_, "/tmp/d", "/tmp/e"));
  EXPECT_EQ(get(root_ / "tmp/e/f"), "f");
}

TEST_F(MoveTest, MovesALinkItself) {
  put(root_ / "tmp/a", "a");
  fs::create_symlink("a", root_ / "tmp/link");
  must(move(*place_, "/tmp/link", "/tmp/link2"));
  EXPECT_TRUE(fs::is_symlink(root_ / "tmp/link2"));
  EXPECT_EQ(get(root_ / "tmp/a"), "a");
}

TEST_F(MoveTest, SaysWhatIsWrong) {
  put(root_ / "tmp/f", "");
  fs::create_directories(root_ / "tmp/d/full");
  struct Case {
    const char* from;
    const char* to;
    Code code;
    const char* named;
  };
  for (const Case& c :
       {Case{"/tmp/x", "/tmp/y", Code::kNotFound, "/tmp/x"},
        Case{"/tmp/f", "/no/such/y", Code::kNotFound, "/no/such/y"},
        Case{"/tmp/f", "/tmp/d", Code::kConflict, "/tmp/d"},
        Case{"/tmp/d/full", "/tmp/d", Code::kConflict, "/tmp/d"},
        Case{"/tmp/d", "/tmp/f", Code::kConflict, "/tmp/f"},
        Case{"/tmp/d", "/tmp/d/full/x", Code::kInvalid, "/tmp/d/full/x"},
        Case{"/", "/tmp/y", Code::kInvalid, "/"}, Case{"/home", "/tmp/y", Code::kInvalid, "/home"},
        Case{"/tmp/f", "/", Code::kInvalid, "/"}}) {
    const auto result = move(*place_, c.from, c.to);
    ASSERT_FALSE(result) << c.from << " to " << c.to;
    EXPECT_EQ(result.error().code, c.code) << result.error().message;
    EXPECT_NE(result.error().message.find("'" + std::string(c.named) + "'"), std::string::npos)
        << result.error().message;
  }
}

TEST_F(MoveTest, StaysInTheRoot) {
  fs::create_symlink(outside_, root_ / "home/out");
  put(root_ / "tmp/f", "f");
  EXPECT_FALSE(move(*place_, "/tmp/f", "out/f"));
  EXPECT_FALSE(move(*place_, "out/secret", "/tmp/stolen"));
  must(move(*place_, "/tmp/f", "/../outside-not"));
  EXPECT_EQ(get(root_ / "outside-not"), "f");
  EXPECT_EQ(entriesIn(outside_), 1U);
}

TEST_F(MoveTest, WorksAcrossFileSystems) {
  const fs::path shm = "/dev/shm";
  struct stat here{};
  struct stat there{};
  if (::stat(dir_.path().c_str(), &here) != 0 || ::stat(shm.c_str(), &there) != 0 ||
      here.st_dev == there.st_dev || ::access(shm.c_str(), W_OK) != 0) {
    GTEST_SKIP() << "needs a second file system";
  }
  const auto whole = must(Place::create(openRoot("/"), "/"));
  const fs::path target = shm / newId("cay-test");
  fs::create_directories(root_ / "tmp/d/sub");
  put(root_ / "tmp/d/f", std::string(100'000, 'x'));
  fs::permissions(root_ / "tmp/d/f", fs::perms(0751));
  fs::create_symlink("f", root_ / "tmp/d/link");
  ASSERT_EQ(::mkfifo((root_ / "tmp/fifo").c_str(), 0600), 0);

  const auto refused = move(*whole, (root_ / "tmp/fifo").string(), target.string());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_TRUE(fs::exists(root_ / "tmp/fifo"));

  const auto moved = move(*whole, (root_ / "tmp/d").string(), target.string());
  EXPECT_EQ(get(target / "f"), std::string(100'000, 'x'));
  EXPECT_EQ(modeOf(target / "f"), 0751U);
  EXPECT_TRUE(fs::is_directory(target / "sub"));
  EXPECT_EQ(fs::read_symlink(target / "link"), "f");
  fs::remove_all(target);
  must(moved);
  EXPECT_FALSE(fs::exists(root_ / "tmp/d"));
}

}  // namespace
}  // namespace cay::files
