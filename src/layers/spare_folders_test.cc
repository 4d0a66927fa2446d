#include "layers/spare_folders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <thread>

#include "sys/file.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;

class SpareFoldersTest : public ::testing::Test {
 protected:
  static Shape shapeOf(size_t overlays) {
    Shape shape{
        .name = std::to_string(overlays),
        .parts = {{.path = "execs"}, {.path = "record", .mode = 0600, .kind = Part::Kind::kFile}}};
    addTops(shape, overlays);
    return shape;
  }

  Fd openFolder(const char* name) {
    fs::create_directories(temp_.path() / name);
    return *sys::openAt(AT_FDCWD, (temp_.path() / name).c_str(), O_RDONLY | O_DIRECTORY);
  }
  size_t spares() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(temp_.path() / "spares"), {}));
  }
  static std::string describe(const fs::path& path) {
    struct stat stat{};
    EXPECT_EQ(::lstat(path.c_str(), &stat), 0) << path;
    std::string out = std::to_string(stat.st_mode) + " " + std::to_string(stat.st_uid) + " " +
                      std::to_string(stat.st_gid) + " " + std::to_string(stat.st_size);
    char names[1024];
    out += " " + std::to_string(::llistxattr(path.c_str(), names, sizeof names));
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    int flags = 0;
    (void)::ioctl(file.get(), FS_IOC_GETFLAGS, &flags);
    return out + " " + std::to_string(flags);
  }
  // All that is in the folder, with everything about it.
  std::vector<std::string> contents(const char* name) const {
    const fs::path folder = temp_.path() / "new" / name;
    std::vector<std::string> out = {describe(folder)};
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      out.push_back(entry.path().lexically_relative(folder).string() + " " +
                    describe(entry.path()));
    }
    std::ranges::sort(out);
    return out;
  }
  void take(const char* name, const Shape& shape) {
    const auto taken = spares_.take(shape, new_.get(), name, owner_);
    ASSERT_TRUE(taken) << taken.error().message;
  }
  void giveBack(const char* name, const Shape& shape) {
    const auto given = spares_.giveBack(shape, new_.get(), name);
    ASSERT_TRUE(given) << given.error().message;
    EXPECT_FALSE(fs::exists(temp_.path() / "new" / name));
  }

  const uid_t owner_ = ::geteuid() == 0 ? 123'456 : ::geteuid();
  cay::testing::TempDir temp_;
  Fd new_ = openFolder("new");
  SpareFolders spares_{openFolder("spares")};
};

TEST_F(SpareFoldersTest, AreTheSameMadeAheadOrNot) {
  const Shape shape = shapeOf(2);
  take("first", shape);
  EXPECT_EQ(spares(), 0U);
  EXPECT_TRUE(fs::is_directory(temp_.path() / "new/first/tops/1/work"));
  struct stat stat{};
  ASSERT_EQ(::stat((temp_.path() / "new/first/tops/1/upper").c_str(), &stat), 0);
  EXPECT_EQ(stat.st_mode, S_IFDIR | 0755U);
  EXPECT_EQ(stat.st_uid, owner_);
  spares_.refill();
  EXPECT_EQ(spares(), SpareFolders::kFew);
  take("second", shape);
  EXPECT_EQ(spares(), SpareFolders::kFew - 1);
  EXPECT_EQ(contents("second"), contents("first"));
  // One of another shape is not taken from them.
  take("third", shapeOf(1));
  EXPECT_EQ(spares(), SpareFolders::kFew - 1);
  EXPECT_FALSE(fs::exists(temp_.path() / "new/third/tops/1"));
}

TEST_F(SpareFoldersTest, AUsedOneIsLikeNew) {
  const Shape shape = shapeOf(2);
  take("fresh", shape);
  const auto asNew = contents("fresh");
  take("used", shape);
  const fs::path used = temp_.path() / "new/used";
  const fs::path upper = used / "tops/0/upper";
  fs::create_directories(upper / "etc/deep/er");
  std::ofstream(upper / "etc/passwd") << "x";
  fs::create_symlink("/etc", upper / "link");
  fs::create_directories(used / "tops/0/work/work");
  std::ofstream(used / "record") << "secret";
  std::ofstream(used / "execs/1.log") << "secret";
  std::ofstream(used / "more") << "secret";
  fs::create_directories(used / "tops/2/upper");
  if (::geteuid() == 0) {
    ASSERT_EQ(::setxattr(upper.c_str(), "trusted.overlay.impure", "y", 1, 0), 0);
    ASSERT_EQ(::chown((upper / "etc").c_str(), owner_ + 1, owner_), 0);
  }
  giveBack("used", shape);
  EXPECT_EQ(spares(), 1U);
  take("again", shape);
  EXPECT_EQ(spares(), 0U);
  EXPECT_EQ(contents("again"), asNew);
}

TEST_F(SpareFoldersTest, NoMarkSurvives) {
  const Shape shape = shapeOf(1);
  take("fresh", shape);
  const auto asNew = contents("fresh");
  const timespec longAgo[] = {{.tv_sec = 42, .tv_nsec = 0}, {.tv_sec = 43, .tv_nsec = 0}};
  const std::vector<std::function<bool(const fs::path&)>> marks = {
      [](const fs::path& upper) { return ::chmod(upper.c_str(), 01777) == 0; },
      [&](const fs::path& upper) { return ::chown(upper.c_str(), owner_, ::getegid()) == 0; },
      [](const fs::path& upper) {
        return ::setxattr(upper.c_str(), "user.message", "hello", 5, 0) == 0;
      },
      [&](const fs::path& upper) { return ::utimensat(AT_FDCWD, upper.c_str(), longAgo, 0) == 0; },
      [](const fs::path& upper) {
        const Fd folder(::open(upper.c_str(), O_RDONLY | O_CLOEXEC));
        int flags = 0;
        if (::ioctl(folder.get(), FS_IOC_GETFLAGS, &flags) != 0) return true;
        flags |= FS_NOATIME_FL | FS_NODUMP_FL;
        return ::ioctl(folder.get(), FS_IOC_SETFLAGS, &flags) == 0;
      },
      [](const fs::path& upper) {
        for (int i = 0; i < 1000; ++i)
          std::ofstream(upper / (std::to_string(i) + std::string(200, 'x')));
        return true;
      },
      [](const fs::path& upper) {
        fs::remove(upper);
        fs::create_directory_symlink("/etc", upper);
        return true;
      },
  };
  for (size_t i = 0; i < marks.size(); ++i) {
    take("used", shape);
    ASSERT_TRUE(marks[i](temp_.path() / "new/used/tops/0/upper")) << i;
    giveBack("used", shape);
    take("again", shape);
    EXPECT_EQ(contents("again"), asNew) << i;
    struct stat stat{};
    ASSERT_EQ(::stat((temp_.path() / "new/again/tops/0/upper").c_str(), &stat), 0);
    EXPECT_GT(stat.st_mtim.tv_sec, 1000) << i;
    EXPECT_GT(stat.st_atim.tv_sec, 1000) << i;
    giveBack("again", shape);
    EXPECT_EQ(spares(), 1U) << i;
  }
  EXPECT_TRUE(fs::exists("/etc/passwd"));
}

// A descriptor, or an overlay that is not unmounted yet, must not lead into the next sandbox.
TEST_F(SpareFoldersTest, WhoHasAnOldOneOpenIsNotInTheNewOne) {
  const Shape shape = shapeOf(1);
  take("used", shape);
  const Fd old = openFolder("new/used/tops/0/upper");
  giveBack("used", shape);
  take("again", shape);
  EXPECT_FALSE(sys::makeDirectoryAt(old.get(), "intruder", 0700));
  EXPECT_TRUE(fs::is_empty(temp_.path() / "new/again/tops/0/upper"));
}

TEST_F(SpareFoldersTest, WhatIsOfAnotherShapeIsBroughtIntoThisOne) {
  take("wide", shapeOf(2));
  take("narrow", shapeOf(1));
  fs::remove_all(temp_.path() / "new/narrow/tops");
  std::ofstream(temp_.path() / "new/narrow/tops") << "a file";
  const auto asNew = contents("wide");
  giveBack("narrow", shapeOf(2));
  take("again", shapeOf(2));
  EXPECT_EQ(contents("again"), asNew);
}

TEST_F(SpareFoldersTest, ThereAreNeverTooMany) {
  const auto name = [](size_t i) { return "n" + std::to_string(i); };
  for (size_t i = 0; i <= SpareFolders::kKept; ++i) take(name(i).c_str(), shapeOf(0));
  for (size_t i = 0; i <= SpareFolders::kKept; ++i) giveBack(name(i).c_str(), shapeOf(0));
  EXPECT_EQ(spares(), SpareFolders::kKept);
  spares_.refill();
  EXPECT_EQ(spares(), SpareFolders::kKept);
  take("b", shapeOf(0));
  giveBack("b", shapeOf(5));  // nobody has asked for those yet
  EXPECT_EQ(spares(), SpareFolders::kKept - 1);
}

TEST_F(SpareFoldersTest, WhatAnEarlierHostLeftIsRemoved) {
  fs::create_directories(temp_.path() / "spares/spare-0/tops/0/upper");
  const SpareFolders later(openFolder("spares"));
  EXPECT_EQ(spares(), 0U);
}

TEST_F(SpareFoldersTest, NobodyGetsTheSameOne) {
  const Shape shape = shapeOf(0);
  take("first", shape);
  std::thread refilling([&] { spares_.refill(); });
  constexpr int kThreads = 3;
  std::vector<std::thread> taking;
  taking.reserve(kThreads);
  for (int thread = 0; thread < kThreads; ++thread) {
    taking.emplace_back([&, thread] {
      for (int i = 0; i < 30; ++i) {
        take((std::to_string(thread) + "-" + std::to_string(i)).c_str(), shape);
        if (i % 3 == 0) giveBack((std::to_string(thread) + "-" + std::to_string(i)).c_str(), shape);
      }
    });
  }
  for (std::thread& thread : taking) thread.join();
  refilling.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(temp_.path() / "new"), {}), 61);
}

}  // namespace
}  // namespace cay::layers
