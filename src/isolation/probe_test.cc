#include "isolation/probe.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "isolation/bait.h"
#include "isolation/capabilities.h"
#include "isolation/child_fixture.h"
#include "isolation/landlock.h"
#include "isolation/probe_acts.h"
#include "isolation/seccomp.h"
#include "sys/io.h"
#include "testing/temp_dir.h"

namespace cay::isolation {
namespace {

using ::testing::HasSubstr;

// The probe's output as a command of a keeper, which runs `keeperWalls` before and the command
// `commandWalls`; both give 0 for success.
std::string probe(const Bait& bait, const std::function<int()>& keeperWalls,
                  const std::function<int()>& commandWalls) {
  sys::Pipe pipe = sys::makePipe().value();
  std::vector<std::string> arguments = bait.toArguments();
  std::vector<char*> pointers;
  for (std::string& text : arguments) pointers.push_back(text.data());
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    if (keeperWalls() != 0) ::_exit(101);
    ::_exit(inChild([&] {
      ::dup2(pipe.write.get(), STDOUT_FILENO);
      return commandWalls() == 0 ? runProbe(pointers) : 102;
    }));
  }
  pipe.write.reset();
  std::string output;
  char piece[4096];
  while (true) {
    const auto count = sys::readSome(pipe.read.get(), piece);
    if (!count || *count == 0) break;
    output.append(piece, *count);
  }
  int status = 0;
  ::waitpid(keeper, &status, 0);
  EXPECT_EQ(status, 0);
  return output;
}

std::map<std::string, Wall> byName(const Walls& walls) {
  std::map<std::string, Wall> out;
  for (const Wall& wall : walls) out[wall.name] = wall;
  return out;
}

class Probe : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0711));
    std::filesystem::create_directory(home_);
    ASSERT_EQ(::chown(home_.c_str(), kUid, kUid), 0);
    ::setenv("TMPDIR", home_.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("TMPDIR"); }

  static constexpr uid_t kUid = 424242;
  static constexpr rlim_t kProcesses = 20;
  testing::TempDir folder_;
  const std::string home_ = folder_.path() / "home";
};

TEST_F(Probe, FindsNoWallAroundAnOrdinaryProcess) {
  const auto laid = LaidBait::lay(folder_.path(), Plan{});
  ASSERT_TRUE(laid) << laid.error().message;
  const auto nothing = [] { return 0; };
  const std::string output = probe(laid->bait(), nothing, nothing);
  auto walls = byName(judge(Mode::kFull, output, {}));
  for (const char* name : {"user", "pid", "mount", "ipc", "uts", "network", "landlock", "seccomp",
                           "identity", "capabilities", "memory", "pids", "cpu"}) {
    EXPECT_EQ(walls[name].verdict, Verdict::kAbsent) << name << ": " << walls[name].why;
    EXPECT_FALSE(walls[name].remedy.empty()) << name;
  }
  for (const Act& act : acts()) EXPECT_THAT(output, HasSubstr(std::string(act.name) + "\t"));
}

TEST_F(Probe, FindsTheWallsOfRestrictedMode) {
  if (landlockAbi() < 6) GTEST_SKIP() << "Landlock here is of ABI " << landlockAbi();
  Plan plan;
  plan.limits.pids = kProcesses;
  const auto laid = LaidBait::lay(folder_.path(), plan);
  ASSERT_TRUE(laid) << laid.error().message;
  const Filter filter = makeFilter({.denyIpc = true});
  const auto keeperWalls = [&] {
    ::prctl(PR_SET_DUMPABLE, 0);
    const auto ruleset = makeRuleset({.denyTcpBind = true, .files = sharedRootFiles(home_)});
    return ruleset && enterDomain(*ruleset) && limitBoundingSet(kNoCapabilities) == 0 ? 0 : 1;
  };
  const auto commandWalls = [&] {
    const rlimit processes{kProcesses, kProcesses};
    ::setrlimit(RLIMIT_NPROC, &processes);
    ::syscall(SYS_setgroups, 0, nullptr);
    if (::setresgid(kUid, kUid, kUid) != 0 || ::setresuid(kUid, kUid, kUid) != 0) return 1;
    return dropTo(kNoCapabilities) == 0 && install(filter.view()) == 0 ? 0 : 1;
  };
  const std::string output = probe(laid->bait(), keeperWalls, commandWalls);
  auto walls = byName(judge(Mode::kRestricted, output, {.whyNoGroups = "no groups here"}));
  for (const char* name :
       {"ipc", "landlock", "seccomp", "identity", "capabilities", "privileges", "pids"}) {
    EXPECT_EQ(walls[name].verdict, Verdict::kHeld) << name << ": " << walls[name].why;
    EXPECT_TRUE(walls[name].remedy.empty()) << name;
  }
  for (const char* name : {"user", "pid", "mount", "uts", "network", "disk"}) {
    EXPECT_EQ(walls[name].verdict, Verdict::kWeaker) << name << ": " << walls[name].why;
  }
  EXPECT_EQ(walls["cpu"].verdict, Verdict::kAbsent);
  EXPECT_EQ(walls["cpu"].why, "no groups here");
  if (::testing::Test::HasFailure()) std::puts(output.c_str());
}

TEST_F(Probe, FindsALimitOnMemory) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer needs more memory than that";
#endif
#endif
  constexpr rlim_t kBytes = 64 << 20;
  Plan plan;
  plan.limits.memoryBytes = kBytes;
  const auto laid = LaidBait::lay(folder_.path(), plan);
  ASSERT_TRUE(laid) << laid.error().message;
  const auto limit = [] {
    const rlimit memory{kBytes, kBytes};
    return ::setrlimit(RLIMIT_DATA, &memory);
  };
  const auto nothing = [] { return 0; };
  const auto verdict = [&](const std::string& output) {
    return byName(judge(Mode::kRestricted, output, {})).at("memory").verdict;
  };
  EXPECT_EQ(verdict(probe(laid->bait(), nothing, limit)), Verdict::kWeaker) << "no group";
  EXPECT_EQ(verdict(probe(laid->bait(), nothing, nothing)), Verdict::kAbsent);
}

std::string allActs(const char* outcome, const std::string& except = "") {
  std::string out;
  for (const Act& act : acts()) {
    if (act.name == except) continue;
    out.append(act.name).append("\t").append(outcome).append("\tbecause\n");
  }
  return out;
}

constexpr Facts facts(bool all) {
  return {
      .memoryGroup = all, .pidsGroup = all, .cpuGroup = all, .diskLimited = all, .whyNoGroups = {}};
}

TEST(Judge, AllDeniedIsHeld) {
  const Walls walls = judge(Mode::kFull, allActs("denied"), facts(true));
  EXPECT_EQ(walls.size(), 15U);
  for (const Wall& wall : walls) {
    EXPECT_EQ(wall.verdict, Verdict::kHeld) << wall.name << ": " << wall.why;
    EXPECT_FALSE(wall.why.empty());
  }
}

TEST(Judge, OneBreachOutweighsTheRest) {
  const std::string output = allActs("denied", "call bpf") + "call bpf\tallowed\tit worked\n";
  const Wall wall = byName(judge(Mode::kFull, output, facts(true))).at("seccomp");
  EXPECT_EQ(wall.verdict, Verdict::kAbsent);
  EXPECT_EQ(wall.why, "could call bpf (it worked)");
}

TEST(Judge, WhatWasNotTriedIsNotHeld) {
  for (const std::string& output : {std::string("nonsense\nx\ty\tz\n"), allActs("none")}) {
    for (const Wall& wall : judge(Mode::kFull, output, {})) {
      if (wall.name == "disk") continue;  // is not tried by anybody
      EXPECT_EQ(wall.verdict, Verdict::kAbsent) << wall.name;
    }
  }
}

TEST(Judge, KnowsAProbeThatCameToItsEnd) {
  const std::string whole = allActs("denied");
  EXPECT_TRUE(isWhole(whole));
  EXPECT_FALSE(isWhole(""));
  EXPECT_FALSE(isWhole(whole.substr(0, whole.rfind('\n', whole.size() - 2))));
}

TEST(Judge, AProbeThatStoppedHalfWayProvesNothing) {
  const Walls walls = judge(Mode::kFull, allActs("denied", "call setns"), facts(true));
  EXPECT_EQ(byName(walls).at("seccomp").verdict, Verdict::kWeaker);
}

TEST(Judge, WhatDoesNotShowInside) {
  auto walls = byName(judge(Mode::kUnprivileged, allActs("denied"), facts(false)));
  EXPECT_EQ(walls["identity"].verdict, Verdict::kWeaker);
  EXPECT_EQ(walls["memory"].verdict, Verdict::kWeaker);
  EXPECT_EQ(walls["cpu"].verdict, Verdict::kAbsent);
  EXPECT_EQ(walls["disk"].verdict, Verdict::kWeaker);
  EXPECT_EQ(walls["pids"].verdict, Verdict::kHeld) << "it has one user";
  walls = byName(judge(Mode::kFull, allActs("denied"), facts(false)));
  EXPECT_EQ(walls["pids"].verdict, Verdict::kWeaker) << "it has many users";
}

TEST(Judge, EveryActBelongsToAWall) {
  std::set<std::string> names;
  for (const Wall& wall : judge(Mode::kFull, "", {})) names.insert(wall.name);
  for (const Act& act : acts()) EXPECT_TRUE(names.contains(act.wall)) << act.name;
}

}  // namespace
}  // namespace cay::isolation
