// With the control groups that this machine has. Where its limits are those of version 1 there is
// nothing to divide in the tree of version 2, and nothing may change.
#include "isolation/group_base.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/ids.h"
#include "isolation/cgroup_files.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

class GroupBaseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    const auto root = rootGroupV2();
    if (!root || !ownGroupV2()) GTEST_SKIP() << "there is no cgroup v2 here";
    const auto text = sys::readFile((*root + "/cgroup.controllers").c_str());
    hasLimits_ = text && text->contains("memory");
    ASSERT_TRUE(groupBaseV2()) << "which also makes the root pass on what it has";
    group_ = *root + "/" + newId("group-base-test");
    ASSERT_EQ(::mkdir(group_.c_str(), 0755), 0);
  }
  void TearDown() override {
    for (const char* below : {"/cay-self", "/cay-made/s0", "/cay-made", ""}) {
      if (!group_.empty()) (void)::rmdir((group_ + below).c_str());
    }
  }

  // Runs in a child that has been put into the group, alone unless others are there.
  template <typename Function>
  static int in(const std::string& group, Function function) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!sys::writeFileAt(AT_FDCWD, (group + "/cgroup.procs").c_str(), "0")) ::_exit(99);
      ::_exit(function());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }

  bool hasLimits_ = false;
  std::string group_;
};

TEST_F(GroupBaseTest, WhoIsAloneStandsAsideAndDividesItsGroup) {
  const int status = in(group_, [&] {
    standAside();
    if (groupBaseV2() != group_) return 1;
    if (!hasLimits_) return ownGroupV2() == group_ ? 0 : 2;
    if (ownGroupV2() != group_ + "/" + kAside) return 3;
    standAside();  // once is enough
    if (ownGroupV2() != group_ + "/" + kAside) return 4;
    return passedOn(group_).size() == 3 ? 0 : 5;
  });
  EXPECT_EQ(status, 0);
}

TEST_F(GroupBaseTest, WhoIsNotAloneStaysAndUsesTheRoot) {
  const int status = in(group_, [&] {
    return in(group_, [&] {
      standAside();
      if (ownGroupV2() != group_) return 1;
      return groupBaseV2() == (hasLimits_ ? *rootGroupV2() : group_) ? 0 : 2;
    });
  });
  EXPECT_EQ(status, 0);
  EXPECT_NE(::access((group_ + "/" + kAside).c_str(), F_OK), 0) << "nothing is left of the try";
}

TEST_F(GroupBaseTest, NobodyLeavesAGroupThatOneOfUsMade) {
  const std::string made = group_ + "/cay-made";
  ASSERT_EQ(::mkdir(made.c_str(), 0755), 0);
  const std::string slot = made + "/s0";
  ASSERT_EQ(::mkdir(slot.c_str(), 0755), 0);
  EXPECT_EQ(in(slot, [&] { return in(slot, [&] { return groupBaseV2() == slot ? 0 : 1; }); }), 0);
}

}  // namespace
}  // namespace cay::isolation
