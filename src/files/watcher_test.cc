#include "files/watcher.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "files/place_fixture.h"
#include "files/whole_write.h"

namespace cay::files {
namespace {

class WatcherTest : public PlaceTest {
 protected:
  std::unique_ptr<Watcher> watch(std::string_view path, Recursive recursive = Recursive::kNo) {
    return must(Watcher::open(place_, path, recursive));
  }

  // Collects events as "created /x" until `last` is among them.
  static std::vector<std::string> until(Watcher& watcher, const std::string& last) {
    std::vector<std::string> seen;
    const auto give = [&](const std::vector<WatchEvent>& events) {
      for (const WatchEvent& event : events) {
        static constexpr const char* kNames[] = {"created ", "modified ", "deleted ", "moved ",
                                                 "overflow "};
        seen.push_back(kNames[static_cast<int>(event.change)] +
                       (event.from.empty() ? "" : event.from + " ") + event.path);
      }
    };
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::ranges::find(seen, last) == seen.end()) {
      if (std::chrono::steady_clock::now() > deadline) {
        ADD_FAILURE() << "no event: " << last;
        break;
      }
      pollfd ready{.fd = watcher.fd(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 50) > 0) {
        give(must(watcher.drain()));
      } else {
        give(watcher.settle());
      }
    }
    return seen;
  }
  using Seen = std::vector<std::string>;
};

TEST_F(WatcherTest, TellsWhatHappensToFiles) {
  const auto watcher = watch("/tmp");
  put(root_ / "tmp/f", "x");
  EXPECT_EQ(until(*watcher, "modified /tmp/f"), (Seen{"created /tmp/f", "modified /tmp/f"}));
  fs::permissions(root_ / "tmp/f", fs::perms(0600));
  EXPECT_EQ(until(*watcher, "modified /tmp/f"), (Seen{"modified /tmp/f"}));
  fs::rename(root_ / "tmp/f", root_ / "tmp/g");
  EXPECT_EQ(until(*watcher, "moved /tmp/f /tmp/g"), (Seen{"moved /tmp/f /tmp/g"}));
  fs::remove(root_ / "tmp/g");
  EXPECT_EQ(until(*watcher, "deleted /tmp/g"), (Seen{"deleted /tmp/g"}));
}

TEST_F(WatcherTest, MovedOutIsDeletedAndMovedInIsCreated) {
  put(root_ / "tmp/f", "x");
  put(root_ / "home/in", "x");
  const auto watcher = watch("/tmp");
  fs::rename(root_ / "tmp/f", root_ / "home/f");
  EXPECT_EQ(until(*watcher, "deleted /tmp/f"), (Seen{"deleted /tmp/f"}));
  fs::rename(root_ / "home/in", root_ / "tmp/in");
  EXPECT_EQ(until(*watcher, "created /tmp/in"), (Seen{"created /tmp/in"}));
}

TEST_F(WatcherTest, WithoutRecursiveNothingBelowIsTold) {
  fs::create_directory(root_ / "tmp/d");
  const auto watcher = watch("/tmp");
  put(root_ / "tmp/d/f", "x");
  put(root_ / "tmp/mark", "");
  EXPECT_EQ(until(*watcher, "created /tmp/mark"), (Seen{"created /tmp/mark"}));
}

TEST_F(WatcherTest, RecursiveTellsOfDirectoriesMadeLaterAndAllThatIsInThem) {
  const auto watcher = watch("/tmp", Recursive::kYes);
  // Made faster than anybody could watch them.
  fs::create_directories(root_ / "tmp/a/b/c");
  put(root_ / "tmp/a/b/c/f", "");
  const Seen seen = until(*watcher, "created /tmp/a/b/c/f");
  for (const char* path : {"/tmp/a", "/tmp/a/b", "/tmp/a/b/c", "/tmp/a/b/c/f"}) {
    EXPECT_EQ(std::ranges::count(seen, std::string("created ") + path), 1) << path;
  }
  put(root_ / "tmp/a/b/c/later", "");
  EXPECT_EQ(until(*watcher, "created /tmp/a/b/c/later"), (Seen{"created /tmp/a/b/c/later"}));
}

TEST_F(WatcherTest, AMovedDirectoryIsKnownByItsNewName) {
  fs::create_directories(root_ / "tmp/a/sub");
  fs::create_directory(root_ / "tmp/ab");
  const auto watcher = watch("/tmp", Recursive::kYes);
  fs::rename(root_ / "tmp/a", root_ / "tmp/z");
  until(*watcher, "moved /tmp/a /tmp/z");
  put(root_ / "tmp/z/sub/f", "");
  until(*watcher, "created /tmp/z/sub/f");
  put(root_ / "tmp/ab/f", "");
  until(*watcher, "created /tmp/ab/f");
  // Moved out: what happens there is no longer told.
  fs::rename(root_ / "tmp/z", root_ / "home/z");
  until(*watcher, "deleted /tmp/z");
  put(root_ / "home/z/sub/g", "");
  put(root_ / "tmp/mark", "");
  EXPECT_EQ(until(*watcher, "created /tmp/mark"), (Seen{"created /tmp/mark"}));
}

TEST_F(WatcherTest, UploadsShowOnlyTheirEnd) {
  const auto watcher = watch("/tmp");
  for (const char* expected : {"created /tmp/f", "modified /tmp/f"}) {
    const auto upload = must(replaceFile(place_, "/tmp/f", std::nullopt));
    must(upload->write("x"));
    must(upload->commit());
    EXPECT_EQ(until(*watcher, expected), (Seen{expected}));
  }
  // Only files without a name are hidden, not those that look like it.
  put(root_ / "tmp/#12", "x");
  EXPECT_EQ(until(*watcher, "modified /tmp/#12"), (Seen{"created /tmp/#12", "modified /tmp/#12"}));
}

TEST_F(WatcherTest, OneFileCanBeWatched) {
  put(root_ / "tmp/f", "x");
  const auto watcher = watch("/tmp/f");
  put(root_ / "tmp/other", "x");
  put(root_ / "tmp/f", "y");
  EXPECT_EQ(until(*watcher, "modified /tmp/f"), (Seen{"modified /tmp/f"}));
  fs::remove(root_ / "tmp/f");
  until(*watcher, "deleted /tmp/f");
  put(root_ / "tmp/f", "again");
  until(*watcher, "created /tmp/f");
}

TEST_F(WatcherTest, EndsWithTheDirectory) {
  fs::create_directory(root_ / "tmp/d");
  const auto watcher = watch("/tmp/d");
  EXPECT_FALSE(watcher->ended());
  fs::remove(root_ / "tmp/d");
  until(*watcher, "deleted /tmp/d");
  EXPECT_TRUE(watcher->ended());
}

TEST_F(WatcherTest, ALostEventIsStated) {
  const auto watcher = watch("/tmp", Recursive::kYes);
  // More than the kernel keeps for us.
  std::ifstream limitFile("/proc/sys/fs/inotify/max_queued_events");
  size_t limit = 0;
  limitFile >> limit;
  ASSERT_GT(limit, 0U);
  const fs::path a = root_ / "tmp/a";
  const fs::path b = root_ / "tmp/b";
  put(a, "");
  for (size_t i = 0; i <= limit / 4; ++i) {
    fs::rename(a, b);
    fs::rename(b, a);
  }
  until(*watcher, "overflow /tmp");
}

TEST_F(WatcherTest, SaysWhatCannotBeWatched) {
  EXPECT_EQ(Watcher::open(place_, "/tmp/x", Recursive::kYes).error().code, Code::kNotFound);
  fs::create_symlink(outside_, root_ / "tmp/out");
  EXPECT_EQ(Watcher::open(place_, "/tmp/out", Recursive::kNo).error().code, Code::kNotFound);
}

TEST_F(WatcherTest, TooManyDirectoriesAreRefused) {
  for (int i = 0; i < 5; ++i) fs::create_directory(root_ / "tmp" / std::to_string(i));
  const auto result = Watcher::open(place_, "/tmp", Recursive::kYes, 5);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kExhausted);
  EXPECT_EQ(result.error().message, "more than 5 directories to watch below '/tmp'");
  // One that becomes too many later is told.
  const auto watcher = must(Watcher::open(place_, "/tmp", Recursive::kYes, 6));
  fs::create_directory(root_ / "tmp/more");
  until(*watcher, "overflow /tmp/more");
}

}  // namespace
}  // namespace cay::files
