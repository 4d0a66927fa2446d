#include "host/disk_reserve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/fd.h"
#include "testing/temp_dir.h"

namespace cay::host {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kGiB = 1 << 30;

TEST(DiskReserve, IsASmallPartOfTheDisk) {
  EXPECT_EQ(DiskReserve::bytesFor(100 * kGiB), 2 * kGiB);
  EXPECT_EQ(DiskReserve::bytesFor(10'000 * kGiB), 4 * kGiB);
  EXPECT_EQ(DiskReserve::bytesFor(2 * kGiB), 256 * kMiB);
  EXPECT_EQ(DiskReserve::bytesFor(400 * kMiB), 100 * kMiB) << "a quarter of a tiny one";
  EXPECT_EQ(DiskReserve::bytesFor(0), 0U);
}

// In a mount namespace of its own; the line that fails, or 0.
int tryTinyDisk(const std::string& path) {
  if (::unshare(CLONE_NEWNS) != 0) return __LINE__;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return __LINE__;
  if (::mount("none", path.c_str(), "tmpfs", 0, "size=4m") != 0) return __LINE__;
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DiskReserve reserve(folder.get());
  if (!reserve.check(0)) return __LINE__;
  std::ofstream(path + "/full") << std::string(7 * kMiB / 2, 'x');
  if (!reserve.check(100)) return __LINE__;  // it does not look each time
  const auto low = reserve.check(300);
  if (low || low.error().code != Code::kExhausted) return __LINE__;
  ::unlink((path + "/full").c_str());
  if (!reserve.check(600)) return __LINE__;
  return 0;
}

TEST(DiskReserve, RefusesWhenLessIsFree) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  const testing::TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(tryTinyDisk(dir.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the line that failed";
}

}  // namespace
}  // namespace cay::host
