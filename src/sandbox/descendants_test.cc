#include "sandbox/descendants.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace cay::sandbox {
namespace {

TEST(Descendants, FindsGrandchildrenAndSignalsExactlyThem) {
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      while (true) ::pause();
    }
    (void)!::write(ready[1], &grandchild, sizeof grandchild);
    (void)::waitpid(grandchild, nullptr, 0);
    ::_exit(7);
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ready[0], &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  const auto found = descendantsOf(::getpid());
  const auto it = std::ranges::find(found, grandchild, &ProcessRef::pid);
  ASSERT_NE(it, found.end());
  EXPECT_NE(std::ranges::find(found, child, &ProcessRef::pid), found.end());

  EXPECT_FALSE(signalProcess({grandchild, it->startTime + 1}, SIGKILL))
      << "another process of that number";
  EXPECT_TRUE(signalProcess(*it, SIGKILL));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_FALSE(signalProcess(*it, SIGKILL)) << "it is gone";
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace cay::sandbox
