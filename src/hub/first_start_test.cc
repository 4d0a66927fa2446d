#include "hub/first_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "hub/schema.h"
#include "hub/token_admin.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr Role kRoles[] = {Role::kAdmin, Role::kUser, Role::kProxy};

class FirstStartTest : public ::testing::Test {
 protected:
  Result<> start(int64_t nowMs = 1000) {
    return makeFirstTokens(database_, paths_, "somebody", nowMs);
  }
  Result<std::string> token(Role role, int64_t nowMs = 2000) {
    return tokenInFile(database_, paths_, role, nowMs);
  }
  Identities known() { return readIdentities(database_).value(); }

  cay::testing::TempDir temp_;
  const Paths paths_{temp_.path().string()};
  Database database_ = openHubDatabase(paths_.database()).value();
};

TEST_F(FirstStartTest, MakesOneOfEachRole) {
  ASSERT_TRUE(start());
  const Identities all = known();
  ASSERT_EQ(all.principals.size(), 1U);
  EXPECT_EQ(all.principals[0].name, "somebody");
  EXPECT_EQ(all.principals[0].type, "user");
  EXPECT_EQ(all.tokens.size(), 3U);
  Tokens tokens;
  tokens.replace(all);
  for (const Role role : kRoles) {
    const auto secret = token(role);
    ASSERT_TRUE(secret) << secret.error().message;
    const auto caller = tokens.check(*secret, 2000);
    ASSERT_TRUE(caller);
    EXPECT_EQ(caller->role, role);
    EXPECT_EQ(caller->name, "somebody");
    struct stat stat{};
    ASSERT_EQ(::stat(paths_.token(roleName(role)).c_str(), &stat), 0);
    EXPECT_EQ(stat.st_mode & 0777U, 0600U);
  }
}

TEST_F(FirstStartTest, NeverAgain) {
  ASSERT_TRUE(start());
  const auto before = token(Role::kUser);
  ASSERT_TRUE(start(5000));
  EXPECT_EQ(token(Role::kUser).value(), before.value());
  fs::remove(paths_.token("user"));
  ASSERT_TRUE(start(6000));
  EXPECT_FALSE(fs::exists(paths_.token("user")));
  EXPECT_EQ(known().tokens.size(), 3U);
}

// Killed after the files were written, before anybody was made known.
TEST_F(FirstStartTest, HalfAStartIsMadeAnew) {
  fs::create_directory(paths_.tokens());
  fs::permissions(paths_.tokens(), fs::perms::owner_all);
  std::ofstream(paths_.token("admin")) << "hf_caynobodys\n";
  ASSERT_TRUE(start());
  for (const Role role : kRoles) EXPECT_TRUE(token(role));
}

TEST_F(FirstStartTest, ALostFileIsToldHowToReplace) {
  ASSERT_TRUE(start());
  fs::remove(paths_.token("user"));
  const auto lost = token(Role::kUser);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kNotFound);
  EXPECT_THAT(lost.error().message, HasSubstr("cay token create user --role user --state " +
                                              paths_.state + " --file " + paths_.token("user")));
}

TEST_F(FirstStartTest, OnlyAGoodTokenOfTheRoleCounts) {
  ASSERT_TRUE(start());
  fs::copy_file(paths_.token("admin"), paths_.token("user"), fs::copy_options::overwrite_existing);
  EXPECT_EQ(token(Role::kUser).error().code, Code::kNotFound) << "an admin's token in its place";
  EXPECT_TRUE(token(Role::kAdmin));
  ASSERT_TRUE(revokeToken(database_, findToken(known(), "admin")->id, 1500));
  EXPECT_EQ(token(Role::kAdmin).error().code, Code::kNotFound);
  fs::permissions(paths_.token("proxy"), fs::perms::group_read, fs::perm_options::add);
  EXPECT_EQ(token(Role::kProxy).error().code, Code::kConflict) << "others can read it";
}

TEST(Namespace, IsWhatAUrlCanHold) {
  for (const char* good : {"a", "root", "A-1_b.c", "0"}) EXPECT_TRUE(isNamespace(good)) << good;
  for (const char* bad : {"", ".", "..", "-a", "a/b", "a b", "a%", "\xc3\xa4"}) {
    EXPECT_FALSE(isNamespace(bad)) << bad;
  }
  EXPECT_FALSE(isNamespace(std::string(97, 'a')));
  EXPECT_TRUE(isNamespace(machineUser()));
}

}  // namespace
}  // namespace cay::hub
