#include "sys/remove_tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/fd.h"
#include "sys/file.h"
#include "testing/temp_dir.h"

namespace cay::sys {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class RemoveTreeTest : public ::testing::Test {
 protected:
  Result<> remove(const char* name = "tree") { return removeTree(folder_.get(), name); }
  void expectGone(const char* name = "tree") {
    const auto removed = remove(name);
    EXPECT_TRUE(removed) << removed.error().message;
    EXPECT_EQ(::faccessat(folder_.get(), name, F_OK, AT_SYMLINK_NOFOLLOW), -1);
  }
  std::string write(const fs::path& path) { return temp_.write(path.string(), "x"); }

  static bool addFlags(const std::string& path, int added) {
    const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    int flags = 0;
    if (::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) == -1) return false;
    flags |= added;
    return ::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags) == 0;
  }

  // Runs `body` in a child, whose limits, user and mounts are its own; true if it says so.
  static bool inChild(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  cay::testing::TempDir temp_;
  Fd folder_{::open(temp_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  fs::path tree_ = temp_.path() / "tree";
};

// In memory where that is possible: on some disks it takes half a minute to make so many files.
class RemoveBigTreeTest : public RemoveTreeTest {
 protected:
  RemoveBigTreeTest() {
    if (::access("/dev/shm", W_OK) != 0) return;
    std::string path = "/dev/shm/cay-test-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return;
    folder_ = *openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
    inMemory_ = path;
    tree_ = inMemory_ / "tree";
  }
  ~RemoveBigTreeTest() override {
    if (!inMemory_.empty()) (void)removeTree(AT_FDCWD, inMemory_.c_str());
  }
  RemoveBigTreeTest(const RemoveBigTreeTest&) = delete;
  RemoveBigTreeTest& operator=(const RemoveBigTreeTest&) = delete;

 private:
  fs::path inMemory_;
};

TEST_F(RemoveTreeTest, RemovesFilesLinksAndFolders) {
  fs::create_directories(tree_ / "a/b/c");
  fs::create_directories(tree_ / "empty");
  write("tree/a/b/f");
  fs::create_symlink("nowhere", tree_ / "dangling");
  ASSERT_EQ(::mkfifo((tree_ / "fifo").c_str(), 0600), 0);
  expectGone();
  write("file");
  expectGone("file");
}

TEST_F(RemoveTreeTest, WhatIsNotThereIsFine) {
  expectGone("nothing");
}

TEST_F(RemoveTreeTest, LinksAreNotFollowed) {
  fs::create_directories(temp_.path() / "outside/d");
  write("outside/d/f");
  fs::create_directories(tree_);
  fs::create_directory_symlink(temp_.path() / "outside", tree_ / "link");
  fs::create_directory_symlink("..", tree_ / "up");
  expectGone();
  EXPECT_TRUE(fs::exists(temp_.path() / "outside/d/f"));
  fs::create_directory_symlink("outside", temp_.path() / "link");
  expectGone("link");
  EXPECT_TRUE(fs::exists(temp_.path() / "outside/d/f"));
}

// With few descriptors, as a busy host has them.
TEST_F(RemoveBigTreeTest, DepthCostsNothing) {
  ASSERT_TRUE(makeDirectoryAt(folder_.get(), "tree", 0700));
  Fd at = *openAt(folder_.get(), "tree", O_RDONLY | O_DIRECTORY);
  for (int level = 0; level < 100'000; ++level) {
    ASSERT_TRUE(makeDirectoryAt(at.get(), "d", 0700));
    if (level % 1000 == 0) ::close(::openat(at.get(), "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    at = *openAt(at.get(), "d", O_RDONLY | O_DIRECTORY);
  }
  at.reset();
  EXPECT_TRUE(inChild([&] {
    const rlimit few{.rlim_cur = 64, .rlim_max = 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    return remove().has_value();
  }));
  EXPECT_FALSE(fs::exists(tree_));
}

TEST_F(RemoveBigTreeTest, BroadAndDeepTogether) {
  for (int branch = 0; branch < 20; ++branch) {
    fs::path path = tree_ / std::to_string(branch);
    for (int level = 0; level < 100; ++level) {
      path /= "d";
      fs::create_directories(path / "side");
    }
  }
  expectGone();
}

TEST_F(RemoveBigTreeTest, ManyFilesInOneFolder) {
  fs::create_directories(tree_);
  const Fd tree = *openAt(folder_.get(), "tree", O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 200'000; ++i) {
    ASSERT_EQ(::mknodat(tree.get(), std::to_string(i).c_str(), S_IFREG | 0600, 0), 0);
  }
  expectGone();
}

TEST_F(RemoveTreeTest, ModesAreNoObstacleToTheOwner) {
  fs::create_directories(tree_ / "closed/inner");
  fs::create_directories(tree_ / "readonly/inner");
  write("tree/closed/inner/f");
  write("tree/readonly/inner/f");
  fs::path deep = tree_;
  for (int level = 0; level < 40; ++level) deep /= "d";
  fs::create_directories(deep / "e/f");
  for (const char* path : {"closed/inner", "closed", "readonly/inner", "readonly"}) {
    ASSERT_EQ(::chmod((tree_ / path).c_str(), path[0] == 'c' ? 0 : 0500), 0);
  }
  const bool root = ::geteuid() == 0;
  if (root) {
    for (const auto& entry : fs::recursive_directory_iterator(temp_.path())) {
      ASSERT_EQ(::lchown(entry.path().c_str(), 65534, 65534), 0);
    }
    ASSERT_EQ(::chown(temp_.path().c_str(), 65534, 65534), 0);
  }
  while (deep != tree_) {
    ASSERT_EQ(::chmod(deep.c_str(), 0), 0);
    deep = deep.parent_path();
  }
  EXPECT_TRUE(inChild([&] {
    if (root && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return false;
    return remove().has_value();
  }));
  EXPECT_FALSE(fs::exists(tree_));
}

TEST_F(RemoveTreeTest, FlagsAreNoObstacle) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directories(tree_ / "frozen/inner");
  fs::create_directories(tree_ / "append");
  const std::string file = write("tree/frozen/inner/f");
  const std::string appended = write("tree/append/f");
  if (!addFlags(file, FS_IMMUTABLE_FL)) GTEST_SKIP() << "no such flags on this file system";
  ASSERT_TRUE(addFlags(appended, FS_APPEND_FL));
  for (const char* path : {"frozen/inner", "frozen", ""}) {
    ASSERT_TRUE(addFlags((tree_ / path).string(), FS_IMMUTABLE_FL));
  }
  ASSERT_TRUE(addFlags((tree_ / "append").string(), FS_APPEND_FL));
  expectGone();
}

TEST_F(RemoveTreeTest, MountPointsAreNeitherEnteredNorHidden) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directories(temp_.path() / "other");
  write("other/precious");
  fs::create_directories(tree_ / "a/mounted");
  write("tree/a/f");
  write("tree/bound");
  EXPECT_TRUE(inChild([&] {
    if (::unshare(CLONE_NEWNS) != 0) return false;
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    const std::string other = temp_.path() / "other";
    if (::mount(other.c_str(), (tree_ / "a/mounted").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return false;
    }
    const std::string file = other + "/precious";
    if (::mount(file.c_str(), (tree_ / "bound").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return false;
    }
    const auto removed = remove();
    if (removed) return false;
    EXPECT_THAT(
        removed.error().message,
        AllOf(HasSubstr("'tree/a/mounted' (Device or resource busy)"), HasSubstr("'tree/bound'")));
    return !HasFailure() && !fs::exists(tree_ / "a/f");
  }));
  EXPECT_TRUE(fs::exists(temp_.path() / "other/precious"));
  expectGone();
}

TEST_F(RemoveTreeTest, FailuresAreCountedAndTheRestGoes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  fs::create_directories(tree_ / "theirs");
  for (int i = 0; i < 8; ++i) write("tree/theirs/" + std::to_string(i));
  for (int i = 0; i < 8; ++i) write("tree/ours" + std::to_string(i));
  ASSERT_EQ(::chmod(tree_.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0711), 0);
  EXPECT_TRUE(inChild([&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return false;
    const auto removed = remove();
    if (removed) return false;
    EXPECT_THAT(removed.error().message,
                AllOf(HasSubstr("'tree/theirs/"), HasSubstr("Permission denied"),
                      HasSubstr("and 4 more")));  // 8 files and 'theirs' itself
    return !HasFailure();
  })) << "see above";
  EXPECT_FALSE(fs::exists(tree_ / "ours3"));
  EXPECT_TRUE(fs::exists(tree_ / "theirs/3"));
}

TEST_F(RemoveTreeTest, WhatAppearsMeanwhileGoesToo) {
  fs::create_directories(tree_ / "a/b");
  for (int i = 0; i < 1000; ++i) write("tree/a/b/" + std::to_string(i));
  std::thread adding([&] {
    for (int i = 0; i < 300; ++i) {
      std::error_code ignored;
      fs::create_directories(tree_ / "a/b/new" / std::to_string(i), ignored);
    }
  });
  (void)remove();
  adding.join();
  expectGone();
}

TEST_F(RemoveTreeTest, EndlessAddingIsReported) {
  fs::create_directories(tree_);
  const Fd tree = *openAt(folder_.get(), "tree", O_RDONLY | O_DIRECTORY);
  std::atomic<bool> stop = false;
  std::vector<std::thread> adding;
  for (int thread = 0; thread < 2; ++thread) {
    adding.emplace_back([&, thread] {
      for (int i = 0; !stop; ++i) {
        const std::string name = std::to_string(thread) + "-" + std::to_string(i);
        if (::mknodat(tree.get(), name.c_str(), S_IFREG | 0600, 0) != 0) return;
      }
    });
  }
  while (!statAt(tree.get(), "0-9") || !statAt(tree.get(), "1-9")) std::this_thread::yield();
  // It may win between two files; what matters is that it comes to an end.
  const auto removed = remove();
  stop = true;
  for (std::thread& thread : adding) thread.join();
  if (!removed) EXPECT_THAT(removed.error().message, HasSubstr("Directory not empty"));
  expectGone();
}

TEST_F(RemoveTreeTest, SeveralAtOnce) {
  for (int i = 0; i < 300; ++i) fs::create_directories(tree_ / std::to_string(i) / "x/y");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const auto removed = remove();
      EXPECT_TRUE(removed) << removed.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(fs::exists(tree_));
}

}  // namespace
}  // namespace cay::sys
