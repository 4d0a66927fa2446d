#include "engine/net_space.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "sys/namespaces.h"

namespace cay::engine {
namespace {

std::string nameOf(const Result<Fd>& space) {
  return space ? netSpaceName(*space).value_or("?") : space.error().message;
}

// 0 if a new namespace is another one, can be entered again, and is ours.
int wrongWithNewSpace() {
  const std::string before = nameOf(ownNetSpace());
  const auto made = inNewNetSpace([] { return ownNetSpace(); });
  if (!made) return 1;
  if (nameOf(ownNetSpace()) != before || netSpaceName(*made).value_or("") == before) return 2;
  const auto again = inNetSpace(*made, [] { return ownNetSpace(); });
  if (nameOf(again) != nameOf(made)) return 3;
  const auto owner = sys::ownerBelow(*made);
  if (!owner) return 4;
  return owner->valid() ? 5 : 0;
}

TEST(NetSpaceTest, ActsElsewhereAndStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
  EXPECT_EQ(wrongWithNewSpace(), 0);
}

TEST(NetSpaceTest, WorksForTheRootOfAUserNamespace) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own, and only a process with one thread may "
                  "enter a user namespace";
#endif
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kUser = 12345;
    if (::setresgid(kUser, kUser, kUser) != 0 || ::setresuid(kUser, kUser, kUser) != 0 ||
        ::prctl(PR_SET_DUMPABLE, 1) != 0 || !sys::enterNewUserNamespace(0, 0)) {
      ::_exit(100);
    }
    ::_exit(wrongWithNewSpace());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(NetSpaceTest, SaysWhyItCannotGo) {
  const auto nowhere = inNetSpace(Fd(), []() -> Result<> { return {}; });
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().sys, EBADF);
}

}  // namespace
}  // namespace cay::engine
