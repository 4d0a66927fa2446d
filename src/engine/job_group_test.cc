#include "engine/job_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/ids.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

TEST(JobGroup, EndsWhatIsInItAndDoesNotWaitForEver) {
  const std::string name = "cay-test-" + randomHex(4);
  const isolation::LimitGroups groups = isolation::LimitGroups::find(name);
  if (!groups.hasPids() || !groups.hasMemory()) GTEST_SKIP() << groups.why();
  const JobGroup group(groups, name, 3);
  const auto entrances = group.entrances({});
  ASSERT_TRUE(entrances) << entrances.error().message;
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (const Fd& entrance : *entrances) {
      if (::write(entrance.get(), "0", 1) != 1) ::_exit(1);
    }
    (void)::write(ready[1], "x", 1);
    while (true) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  // Killed, but nobody has waited to see it die.
  const auto hurried = group.end(Millis(0));
  ASSERT_FALSE(hurried);
  EXPECT_EQ(hurried.error().code, Code::kTimeout);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(group.end(Millis(10'000)));
  groups.removeAll();
}

// A pool host has groups of its own below its job's. What they were charged for is not left with
// what remains of a removed group.
TEST(JobGroup, GivesBackTheMemoryOfTheGroupsBelow) {
  constexpr size_t kBytes = 32 << 20;
  const std::string name = "cay-test-" + randomHex(4);
  const isolation::LimitGroups groups = isolation::LimitGroups::find(name);
  if (!groups.hasMemory()) GTEST_SKIP() << groups.why();
  const JobGroup group(groups, name, 3);
  ASSERT_TRUE(group.entrances({}));
  const testing::TempDir dir;
  const std::string file = dir.path() / "cached";
  for (const std::string& folder : groups.foldersOf(3)) {
    const std::string below = folder + "/below";
    if (!std::filesystem::exists(folder + "/memory.stat")) continue;
    ASSERT_EQ(::mkdir(below.c_str(), 0700), 0);
    if (!std::filesystem::exists(below + "/memory.stat")) {
      groups.removeAll();
      GTEST_SKIP() << "groups below have no account of their own until somebody asks for it";
    }
    const pid_t child = ::fork();
    if (child == 0) {
      const Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      const bool entered =
          sys::writeFileAt(AT_FDCWD, (below + "/cgroup.procs").c_str(), "0").has_value();
      const bool written = sys::writeAll(out.get(), std::string(kBytes, 'x')).has_value();
      ::_exit(entered && written && ::fsync(out.get()) == 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  ASSERT_GE(groups.usage(3).memoryBytes, kBytes);
  EXPECT_TRUE(group.end(Millis(10'000)));
  EXPECT_LT(groups.usage(3).memoryBytes, kBytes / 2);
  groups.removeAll();
}

}  // namespace
}  // namespace cay::engine
