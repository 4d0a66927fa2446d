#include "engine/job_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/ids.h"

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

}  // namespace
}  // namespace cay::engine
