#include "engine/group_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "testing/temp_dir.h"

namespace cay::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GroupHostsTest : public ::testing::Test {
 protected:
  GroupHosts::Job job(const std::string& id, const std::string& address,
                      std::vector<std::string> aliases = {}) {
    return {.id = id,
            .address = address,
            .group = "ns/red",
            .groupName = "red",
            .aliases = std::move(aliases),
            .file = fileOf(id)};
  }
  std::string fileOf(const std::string& id) { return (dir_.path() / id).string(); }
  std::string read(const std::string& id) {
    std::ifstream file(fileOf(id), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  ino_t inode(const std::string& id) {
    struct stat found{};
    EXPECT_EQ(::stat(fileOf(id).c_str(), &found), 0);
    return found.st_ino;
  }

  testing::TempDir dir_;
  GroupHosts hosts_;
};

TEST_F(GroupHostsTest, AJobThatIsAloneKnowsItself) {
  GroupHosts::Job alone = job("a1", "100.65.0.1");
  alone.group.clear();
  ASSERT_TRUE(hosts_.join(alone));
  EXPECT_EQ(read("a1"),
            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n100.65.0.1 a1\n");
}

TEST_F(GroupHostsTest, WithoutAnAddressItIsTheLoopback) {
  GroupHosts::Job alone = job("a1", "");
  alone.group.clear();
  ASSERT_TRUE(hosts_.join(alone));
  EXPECT_THAT(read("a1"), HasSubstr("127.0.0.1 a1\n"));
}

TEST_F(GroupHostsTest, MembersComeAndGoInTheSameFile) {
  ASSERT_TRUE(hosts_.join(job("a1", "100.96.0.2", {"db"})));
  const ino_t before = inode("a1");
  ASSERT_TRUE(hosts_.join(job("b2", "100.96.0.3", {"web", "db"})));
  for (const char* id : {"a1", "b2"}) {
    const std::string text = read(id);
    EXPECT_THAT(text, HasSubstr("100.96.0.2 red.group.internal\n"));
    EXPECT_THAT(text, HasSubstr("100.96.0.3 red.group.internal\n"));
    EXPECT_THAT(text, HasSubstr("100.96.0.2 red-db\n"));
    EXPECT_THAT(text, HasSubstr("100.96.0.3 red-db\n")) << "several jobs may have one alias";
    EXPECT_THAT(text, HasSubstr("100.96.0.3 red-web\n"));
  }
  hosts_.leave("b2");
  EXPECT_THAT(read("a1"), Not(HasSubstr("100.96.0.3")));
  EXPECT_EQ(inode("a1"), before) << "what is mounted into the job is the old file";
}

TEST_F(GroupHostsTest, GroupsOfOneNameStayApart) {
  ASSERT_TRUE(hosts_.join(job("a1", "100.96.0.2")));
  GroupHosts::Job other = job("b2", "100.96.1.2");
  other.group = "elsewhere/red";
  ASSERT_TRUE(hosts_.join(other));
  EXPECT_THAT(read("a1"), Not(HasSubstr("100.96.1.2")));
}

TEST_F(GroupHostsTest, NamesThatAreNoHostNamesAreRefused) {
  for (const char* alias : {"", "a b", "a\nb", "-a", "a.b", "UP", "\xc3\xa9", "a#"}) {
    const auto joined = hosts_.join(job("a1", "100.96.0.2", {alias}));
    ASSERT_FALSE(joined) << alias;
    EXPECT_EQ(joined.error().code, Code::kInvalid);
  }
  GroupHosts::Job odd = job("a1", "100.96.0.2");
  odd.groupName = "x\n127.0.0.1 pypi.org";
  EXPECT_FALSE(hosts_.join(odd));
  EXPECT_FALSE(hosts_.join(job("../a", "100.96.0.2")));
}

TEST_F(GroupHostsTest, ALinkInPlaceOfTheFileIsNotFollowed) {
  const std::string victim = dir_.write("victim", "old");
  std::filesystem::create_symlink(victim, fileOf("a1"));
  EXPECT_FALSE(hosts_.join(job("a1", "100.96.0.2")));
  EXPECT_EQ(read("victim"), "old");
  // It has not joined: others do not see it.
  ASSERT_TRUE(hosts_.join(job("b2", "100.96.0.3")));
  EXPECT_THAT(read("b2"), Not(HasSubstr("100.96.0.2 ")));
}

TEST_F(GroupHostsTest, TheEnvironmentTellsTheNames) {
  JobSpec spec;
  EXPECT_TRUE(groupEnvironment(spec).empty());
  spec.group = "ns/red";
  spec.groupName = "red";
  EXPECT_EQ(groupEnvironment(spec), (Pairs{{"HF_NETWORK_GROUP_HOSTNAME", "red.group.internal"},
                                           {"HF_NETWORK_GROUP_PREFIX", "red-"}}));
}

}  // namespace
}  // namespace cay::engine
