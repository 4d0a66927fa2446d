#include "isolation/ordinary_user.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "isolation/child_fixture.h"
#include "sys/io.h"
#include "sys/namespaces.h"

namespace cay::isolation {
namespace {

constexpr uid_t kUser = 12345;
constexpr gid_t kGroup = 12346;

bool hasCapabilities() {
  return !sys::readFile("/proc/self/status").value_or("").contains("CapEff:\t0000000000000000\n");
}

// As a program is that an ordinary user has just started.
bool beUser() {
  return ::setresgid(kGroup, kGroup, kGroup) == 0 && ::setresuid(kUser, kUser, kUser) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 1) == 0;
}

TEST(OrdinaryUser, RootOfANamespaceStepsDown) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own, and only a process with one thread may "
                  "enter a user namespace";
#endif
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  EXPECT_EQ(inChild([] {
              if (!beUser() || !sys::enterNewUserNamespace(0, 0)) return 1;
              if (::geteuid() != 0 || !hasCapabilities()) return 2;
              if (!becomeOrdinaryUser()) return 3;
              if (::geteuid() != kUser || ::getegid() != kGroup) return 4;
              if (hasCapabilities()) return 5;
              // It can do what ordinary users can.
              if (!sys::enterNewUserNamespace(0, 0)) return 6;
              return ::geteuid() == 0 && hasCapabilities() ? 0 : 7;
            }),
            0);
}

TEST(OrdinaryUser, OthersStayWhoTheyAre) {
  EXPECT_EQ(inChild([] {
              const uid_t before = ::geteuid();
              const bool could = hasCapabilities();
              if (!becomeOrdinaryUser()) return 1;
              return ::geteuid() == before && hasCapabilities() == could ? 0 : 2;
            }),
            0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  EXPECT_EQ(inChild([] {
              if (!beUser() || !becomeOrdinaryUser()) return 1;
              return ::geteuid() == kUser ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace cay::isolation
