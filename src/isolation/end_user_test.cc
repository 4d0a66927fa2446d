#include "isolation/end_user.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace cay::isolation {
namespace {

constexpr uid_t kSomebody = 2'999'999;

TEST(EndUser, ReachesForkingProcessesAndNobodyElse) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(kSomebody, kSomebody, kSomebody) != 0) ::_exit(9);
    for (int i = 0; i < 3; ++i) (void)::fork();
    while (true) ::pause();
  }
  while (!anyLeftOf(kSomebody)) ::usleep(1'000);
  EXPECT_TRUE(endAllOf(kSomebody));
  int status = 0;
  int ended = 0;
  while (::waitpid(-1, &status, 0) > 0) {
    EXPECT_TRUE(WIFSIGNALED(status));
    ++ended;
  }
  EXPECT_GE(ended, 1);
  EXPECT_FALSE(anyLeftOf(kSomebody));
}

TEST(EndUser, RefusesRoot) {
  EXPECT_FALSE(endAllOf(0));
}

}  // namespace
}  // namespace cay::isolation
