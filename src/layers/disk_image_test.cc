#include "layers/disk_image.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "layers/loop_device.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/mount.h"
#include "testing/temp_dir.h"

namespace cay::layers {
namespace {

namespace fs = std::filesystem;
constexpr uint64_t kMiB = uint64_t{1} << 20;

class DiskImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto works = disks_.tryOut(); !works) GTEST_SKIP() << works.error().message;
  }

  Fd openFolder(const fs::path& path) {
    fs::create_directories(path);
    return *sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  }
  // The disk, mounted nowhere: the descriptor is its root directory.
  Result<Fd> mount(const char* name) {
    CAY_ASSIGN(const Fd file, sys::openAt(folder_.get(), name, O_RDWR));
    CAY_ASSIGN(const Fd device, attachLoop(file));
    const sys::MountOption source{"source", sys::fdPath(device.get())};
    return sys::newMount("ext4", {&source, 1}, {.noDevices = true});
  }

  cay::testing::TempDir temp_;
  Fd folder_ = openFolder(temp_.path() / "sandbox");
  DiskImages disks_{openFolder(temp_.path() / "disks")};
};

TEST_F(DiskImageTest, HoldsAboutWhatWasAskedForAndNoMore) {
  ASSERT_TRUE(disks_.make(folder_.get(), "disk.img", 64 * kMiB));
  struct stat stat{};
  ASSERT_EQ(::stat((temp_.path() / "sandbox/disk.img").c_str(), &stat), 0);
  EXPECT_EQ(stat.st_size, 64 * kMiB);
  EXPECT_LT(stat.st_blocks * 512, 1 * kMiB);
  const auto root = mount("disk.img");
  ASSERT_TRUE(root) << root.error().message;
  const Fd file = *sys::openAt(root->get(), "f", O_WRONLY | O_CREAT, 0600);
  const std::string mebibyte(kMiB, 'x');
  uint64_t written = 0;
  while (written < 64 && sys::writeAll(file.get(), mebibyte)) ++written;
  EXPECT_GE(written, 58U);
  EXPECT_LT(written, 64U);
}

TEST_F(DiskImageTest, FilesAreLimitedToo) {
  ASSERT_TRUE(disks_.make(folder_.get(), "disk.img", 16 * kMiB));
  const auto root = mount("disk.img");
  ASSERT_TRUE(root) << root.error().message;
  const Fd dir = *sys::openAt(root->get(), ".", O_RDONLY | O_DIRECTORY);
  struct statvfs all{};
  ASSERT_EQ(::fstatvfs(dir.get(), &all), 0);
  EXPECT_EQ(all.f_files, 2048U);
  int err = 0;
  for (int i = 0; i < 3000 && err == 0; ++i) {
    if (::mknodat(dir.get(), std::to_string(i).c_str(), S_IFREG | 0600, 0) != 0) err = errno;
  }
  EXPECT_EQ(err, ENOSPC);
}

TEST_F(DiskImageTest, DisksOfOneSizeAreIndependent) {
  for (const char* name : {"a", "b"}) ASSERT_TRUE(disks_.make(folder_.get(), name, 16 * kMiB));
  const auto a = mount("a");
  const auto b = mount("b");
  ASSERT_TRUE(a && b);
  ASSERT_TRUE(sys::makeDirectoryAt(a->get(), "only-in-a", 0700));
  EXPECT_FALSE(sys::statAt(b->get(), "only-in-a"));
  EXPECT_TRUE(sys::statAt(a->get(), "only-in-a"));
}

TEST_F(DiskImageTest, KeepsItsFiles) {
  ASSERT_TRUE(disks_.make(folder_.get(), "disk.img", 16 * kMiB));
  ASSERT_TRUE(sys::makeDirectoryAt(mount("disk.img")->get(), "kept", 0700));
  const auto again = mount("disk.img");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(sys::statAt(again->get(), "kept"));
}

TEST_F(DiskImageTest, ManyAtOnce) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 4; ++i) {
        const std::string name = std::to_string(thread) + "-" + std::to_string(i);
        const auto made = disks_.make(folder_.get(), name.c_str(), (20 + i) * kMiB);
        ASSERT_TRUE(made) << made.error().message;
        const auto root = mount(name.c_str());
        ASSERT_TRUE(root) << root.error().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DiskImageTest, OnlySomeSizesAreRemembered) {
  for (uint64_t mib = 16; mib < 16 + 40; ++mib) {
    ASSERT_TRUE(disks_.make(folder_.get(), std::to_string(mib).c_str(), mib * kMiB));
  }
  const auto kept = std::distance(fs::directory_iterator(temp_.path() / "disks"), {});
  EXPECT_LE(kept, 17);
}

// As in the host, where a reaper of all children may be faster than the one who waits.
TEST_F(DiskImageTest, AChildThatIsReapedBySomebodyElseIsNoFailure) {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  const auto made = disks_.make(folder_.get(), "disk.img", 48 * kMiB);
  ::signal(SIGCHLD, before);
  EXPECT_TRUE(made) << made.error().message;
  EXPECT_TRUE(mount("disk.img"));
}

TEST_F(DiskImageTest, TooSmallIsRefused) {
  const auto made = disks_.make(folder_.get(), "disk.img", 15 * kMiB);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalid);
  EXPECT_THAT(made.error().message, ::testing::HasSubstr("16 MiB"));
}

TEST_F(DiskImageTest, ADiskThatIsThereIsNotOverwritten) {
  ASSERT_TRUE(disks_.make(folder_.get(), "disk.img", 16 * kMiB));
  EXPECT_FALSE(disks_.make(folder_.get(), "disk.img", 16 * kMiB));
  EXPECT_TRUE(fs::exists(temp_.path() / "sandbox/disk.img"));
}

}  // namespace
}  // namespace cay::layers
