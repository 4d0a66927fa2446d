// Control groups as this machine has them. Needs root.
#include "isolation/limit_groups.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "base/ids.h"
#include "isolation/cgroup_files.h"
#include "isolation/child_fixture.h"
#include "isolation/group_base.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

namespace fs = std::filesystem;

// Of a child.
constexpr int kCannotEnter = 100;
constexpr int kWrong = 101;

class LimitGroupsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    groups_ = LimitGroups::find(name_);
  }
  void TearDown() override { groups_.removeAll(); }

  LimitGroup open(uint32_t slot, const Limits& limits) {
    auto group = groups_.open(slot, limits);
    EXPECT_TRUE(group) << group.error().message;
    return group ? std::move(*group) : LimitGroup();
  }

  // As a keeper lets a command in. For use in a child.
  static bool enter(const LimitGroup& group) {
    for (const Fd& entrance : group.entrances) {
      if (::write(entrance.get(), "0", 1) != 1) return false;
    }
    if (!group.execs.valid()) return true;
    (void)::mkdirat(group.execs.get(), "x", 0755);
    const Fd procs(::openat(group.execs.get(), "x/cgroup.procs", O_WRONLY | O_CLOEXEC));
    return ::write(procs.get(), "0", 1) == 1;
  }

  // The number in a line of a file that stays open.
  static uint64_t counter(const Fd& file, const std::string& line) {
    char text[4096] = {};
    if (::pread(file.get(), text, sizeof text - 1, 0) <= 0) return 0;
    const std::string all = std::string("\n") + text;
    const size_t at = all.find("\n" + line + " ");
    return at == std::string::npos ? 0 : std::stoull(all.substr(at + line.size() + 2));
  }

  // Our folders, one in each tree.
  std::vector<fs::path> folders() {
    std::vector<fs::path> out;
    if (const auto v2 = groupBaseV2()) out.emplace_back(*v2 + "/" + name_);
    for (const char* controller : {"memory", "pids", "cpu"}) {
      if (const auto v1 = ownGroupV1(controller)) out.emplace_back(*v1 + "/" + name_);
    }
    std::erase_if(out, [](const fs::path& path) { return !fs::exists(path); });
    return out;
  }
  // What a file of a slot's group holds, wherever it is.
  std::string fileOf(const std::string& group, const std::string& file) {
    for (const fs::path& folder : folders()) {
      if (auto text = sys::readFile((folder / group / file).c_str())) return *text;
    }
    return "";
  }

  const std::string name_ = newId("cay");
  LimitGroups groups_;
};

TEST_F(LimitGroupsTest, ProcessesAreCountedAndStopped) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer's own threads count too";
#endif
  if (!groups_.hasPids()) GTEST_SKIP() << groups_.why();
  const LimitGroup group = open(0, {.pids = 5});
  const uint64_t before = counter(group.pidsEvents, "max");
  int alive[2];  // closed when the parent of all ends
  ASSERT_EQ(::pipe2(alive, O_CLOEXEC), 0);
  const int made = inChild([&] {
    if (!enter(group)) return kCannotEnter;
    int children = 0;
    for (pid_t child = 1; child > 0 && children < 50; ++children) {
      child = ::fork();
      if (child < 0) break;
      if (child == 0) {
        char end = 0;
        ::close(alive[1]);
        (void)::read(alive[0], &end, 1);
        ::_exit(0);
      }
    }
    return groups_.usage(0).pids == 5 ? children : kWrong;
  });
  ::close(alive[0]);
  ::close(alive[1]);
  EXPECT_EQ(made, 4) << "beside itself";
  EXPECT_GT(counter(group.pidsEvents, "max"), before);
}

TEST_F(LimitGroupsTest, TooMuchMemoryIsAKillThatIsCounted) {
  if (!groups_.hasMemory()) GTEST_SKIP() << groups_.why();
  const LimitGroup group = open(0, {.memoryBytes = 32 << 20});
  const auto use = [&](size_t bytes) {
    return inChild([&] {
      if (!enter(group)) return kCannotEnter;
      std::vector<char> memory(bytes, 'x');
      return groups_.usage(0).memoryBytes >= bytes ? 0 : kWrong;
    });
  };
  EXPECT_EQ(use(8 << 20), 0);
  EXPECT_EQ(counter(group.oomKills, "oom_kill"), 0U);
  EXPECT_EQ(use(128 << 20), kKilledBy + SIGKILL);
  EXPECT_EQ(counter(group.oomKills, "oom_kill"), 1U);
}

TEST_F(LimitGroupsTest, TheNextOwnerOfASlotHasItsOwnLimits) {
  if (!groups_.hasPids()) GTEST_SKIP() << groups_.why();
  (void)open(3, {.pids = 7});
  EXPECT_EQ(fileOf("s3", "pids.max"), "7\n");
  groups_.release(3);
  (void)open(3, {});
  EXPECT_EQ(fileOf("s3", "pids.max"), "max\n") << "0 is no limit";
  (void)open(4, {.pids = 9});
  EXPECT_EQ(fileOf("s3", "pids.max"), "max\n");
}

TEST_F(LimitGroupsTest, WhatALastOwnerUsedIsForgotten) {
  const LimitGroup group = open(0, {});
  if (!group.execs.valid()) GTEST_SKIP() << "CPU time is kept in groups of version 2";
  const int spent = inChild([&] {
    if (!enter(group)) return kCannotEnter;
    while (groups_.usage(0).cpuMs < 20) {
    }
    return 0;
  });
  EXPECT_EQ(spent, 0);
  EXPECT_GE(groups_.usage(0).cpuMs, 20U);
  groups_.release(0);
  (void)open(0, {});
  EXPECT_LT(groups_.usage(0).cpuMs, 20U);
}

TEST_F(LimitGroupsTest, NothingIsLeftAtTheEnd) {
  for (uint32_t slot = 0; slot < 3; ++slot) {
    const LimitGroup group = open(slot, {.memoryBytes = 64 << 20, .pids = 10, .milliCpus = 500});
    EXPECT_EQ(inChild([&] { return enter(group) ? 0 : kCannotEnter; }), 0);
  }
  EXPECT_FALSE(folders().empty());
  groups_.removeAll();
  EXPECT_TRUE(folders().empty());
}

TEST_F(LimitGroupsTest, WhatIsMissingIsSaid) {
  const bool whole = groups_.hasMemory() && groups_.hasPids() && groups_.hasCpu();
  EXPECT_EQ(groups_.why().empty(), whole) << groups_.why();
}

}  // namespace
}  // namespace cay::isolation
