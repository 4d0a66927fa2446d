#include "cli/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "testing/temp_dir.h"

namespace cay::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Map = std::map<std::string, std::string>;

std::string chosen(const std::string& given, bool isRoot, const Map& variables) {
  const auto paths = statePaths(given, isRoot, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  });
  return paths ? paths->state : "error: " + paths.error().message;
}

mode_t modeOf(const std::string& path) {
  struct stat stat{};
  EXPECT_EQ(::stat(path.c_str(), &stat), 0) << path;
  return stat.st_mode & 0777U;
}

TEST(StateDir, IsTheUsersOwn) {
  const Map user{{"HOME", "/home/u"}, {"XDG_STATE_HOME", "/x"}};
  EXPECT_EQ(chosen("", true, user), "/var/lib/cay");
  EXPECT_EQ(chosen("", false, user), "/x/cay");
  EXPECT_EQ(chosen("", false, {{"HOME", "/home/u"}}), "/home/u/.local/state/cay");
  EXPECT_EQ(chosen("", false, {{"HOME", "/home/u"}, {"XDG_STATE_HOME", "relative"}}),
            "/home/u/.local/state/cay");
  EXPECT_THAT(chosen("", false, {}), HasSubstr("--state"));
}

TEST(StateDir, IsAbsoluteAndPlain) {
  EXPECT_EQ(chosen("/a//b/../c/", true, {}), "/a/c");
  EXPECT_EQ(chosen("x", true, {}), (fs::current_path() / "x").string());
  EXPECT_THAT(chosen("/", true, {}), HasSubstr("error"));
  EXPECT_THAT(chosen("/a/..", true, {}), HasSubstr("error"));
}

TEST(StateDir, IsMadePrivate) {
  const cay::testing::TempDir temp;
  const std::string path = (temp.path() / "a/b/state").string();
  const auto made = makeState(path);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(modeOf(path), 0700U);
  fs::permissions(path, fs::perms(0755));
  ASSERT_TRUE(makeState(path));
  EXPECT_EQ(modeOf(path), 0700U);
  (void)temp.write("file", "");
  EXPECT_FALSE(makeState((temp.path() / "file").string()));
}

TEST(StateDir, OfSomebodyElseIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of somebody else";
  const cay::testing::TempDir temp;
  const std::string path = (temp.path() / "state").string();
  fs::create_directory(path);
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  EXPECT_EQ(makeState(path).error().code, Code::kConflict);
  std::ofstream(path + "/hub.db") << "";
  EXPECT_EQ(openHub(path).error().code, Code::kConflict);
}

TEST(StateDir, WithoutAHubIsToldHowToHaveOne) {
  const cay::testing::TempDir temp;
  const auto none = openHub(temp.path().string());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("cay serve --state " + temp.path().string()));
}

}  // namespace
}  // namespace cay::cli
