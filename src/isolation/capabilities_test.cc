#include "isolation/capabilities.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <string>
#include <string_view>

#include "isolation/child_fixture.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

CapabilitySet ownSet(std::string_view name) {
  const std::string status = sys::readFile("/proc/self/status").value_or("");
  const size_t at = status.find("\n" + std::string(name) + ":\t");
  CapabilitySet set = ~CapabilitySet{0};
  if (at != std::string::npos) {
    const char* first = status.data() + at + name.size() + 3;
    std::from_chars(first, status.data() + status.size(), set, 16);
  }
  return set;
}

// 0 if all sets are as they should be after dropTo(kept), else which one is not.
int wrongSet(CapabilitySet kept) {
  if (ownSet("CapPrm") != kept) return 1;
  if (ownSet("CapEff") != kept) return 2;
  if (ownSet("CapBnd") != kept) return 3;
  if (ownSet("CapInh") != 0) return 4;
  if (ownSet("CapAmb") != 0) return 5;
  return 0;
}

class Capabilities : public ::testing::Test {
 protected:
  void SetUp() override {
    if ((ownSet("CapEff") & kCommandCapabilities) != kCommandCapabilities) {
      GTEST_SKIP() << "needs root";
    }
  }
};

TEST_F(Capabilities, KeepsTheListedOnesAndNoOthers) {
  EXPECT_EQ(inChild([] {
              if (dropTo(kCommandCapabilities) != 0) return 100;
              return wrongSet(kCommandCapabilities);
            }),
            0);
  EXPECT_EQ(inChild([] { return dropTo(kNoCapabilities) == 0 ? wrongSet(0) : 100; }), 0);
}

TEST_F(Capabilities, CannotBeTakenBack) {
  EXPECT_EQ(inChild([] {
              if (dropTo(kNoCapabilities) != 0) return 100;
              return dropTo(kCommandCapabilities) == 0 ? 0 : errno;
            }),
            EPERM);
}

TEST_F(Capabilities, RootWithoutThemIsDenied) {
  EXPECT_EQ(inChild([] {
              if (dropTo(kCommandCapabilities) != 0) return 100;
              return ::mknod("/tmp/cay-test-device", S_IFCHR | 0600, 0x103) == 0 ? 0 : errno;
            }),
            EPERM);
}

TEST_F(Capabilities, InANewUserNamespaceToo) {
  EXPECT_EQ(inChild([] {
              if (limitBoundingSet(kNoCapabilities) != 0) return 100;
              // Not unshare, which wants a process without the threads of a sanitizer.
              const long child = ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
              if (child == 0) {
                if (ownSet("CapBnd") == 0) ::_exit(101);
                ::_exit(dropTo(kCommandCapabilities) == 0 ? wrongSet(kCommandCapabilities) : 102);
              }
              int status = 0;
              return ::waitpid(static_cast<pid_t>(child), &status, 0) == child ? WEXITSTATUS(status)
                                                                               : 103;
            }),
            0);
}

TEST_F(Capabilities, ABoundingSetThatIsLimitedNeedsNoPrivilegeLater) {
  EXPECT_EQ(inChild([] {
              if (limitBoundingSet(kNoCapabilities) != 0) return 100;
              if (::setresgid(4242, 4242, 4242) != 0 || ::setresuid(4242, 4242, 4242) != 0) {
                return 101;
              }
              return dropTo(kNoCapabilities) == 0 ? wrongSet(0) : 102;
            }),
            0);
}

}  // namespace
}  // namespace cay::isolation
