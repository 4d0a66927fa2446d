#include "hub/token_admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/first_start.h"
#include "hub/schema.h"
#include "testing/temp_dir.h"

namespace cay::hub {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenAdminTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(makeFirstTokens(database_, paths_, "first", 1)); }
  Identities known() { return readIdentities(database_).value(); }
  Result<Caller> check(const std::string& secret, int64_t nowMs) {
    Tokens tokens;
    tokens.replace(known());
    return tokens.check(secret, nowMs);
  }

  cay::testing::TempDir temp_;
  const Paths paths_{temp_.path().string()};
  Database database_ = openHubDatabase(paths_.database()).value();
};

TEST_F(TokenAdminTest, ATokenIsTheFirstOnesUnlessSaidOtherwise) {
  const auto made = createToken(
      database_, {.name = "ci", .user = "", .namespaces = {"team"}, .expiresMs = 100}, 10);
  ASSERT_TRUE(made) << made.error().message;
  const auto caller = check(made->secret, 99);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->name, "first");
  EXPECT_TRUE(caller->may("first"));
  EXPECT_TRUE(caller->may("team"));
  EXPECT_FALSE(caller->may("other"));
  EXPECT_FALSE(check(made->secret, 100));
}

TEST_F(TokenAdminTest, SomebodyNewIsMadeKnownOnce) {
  const auto one = createToken(database_, {.name = "a", .user = "second", .namespaces = {}}, 10);
  const auto two = createToken(database_, {.name = "b", .user = "second", .namespaces = {}}, 11);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->row.principal, two->row.principal);
  EXPECT_EQ(known().principals.size(), 2U);
  EXPECT_FALSE(check(one->secret, 12)->may("first"));
}

TEST_F(TokenAdminTest, BadNamesAreRefusedAndLeaveNothing) {
  for (const char* user : {"..", "a/b", "a b", "-x"}) {
    EXPECT_EQ(createToken(database_, {.name = "n", .user = user, .namespaces = {}}, 1).error().code,
              Code::kInvalid);
    EXPECT_EQ(
        createToken(database_, {.name = "n", .user = "", .namespaces = {user}}, 1).error().code,
        Code::kInvalid);
  }
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string(97, 'a')}) {
    EXPECT_EQ(createToken(database_, {.name = name, .user = "", .namespaces = {}}, 1).error().code,
              Code::kInvalid);
  }
  EXPECT_EQ(known().tokens.size(), 3U);
  EXPECT_FALSE(database_.inTransaction());
}

TEST_F(TokenAdminTest, NobodyKnownMeansNoHub) {
  Database empty = openHubDatabase(paths_.state + "/empty.db").value();
  const auto made = createToken(empty, {.name = "n", .user = "", .namespaces = {}}, 1);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kConflict);
  EXPECT_FALSE(empty.inTransaction());
}

TEST_F(TokenAdminTest, FoundByIdOrByAnUnambiguousName) {
  const auto one = createToken(database_, {.name = "ci", .user = "", .namespaces = {}}, 10);
  EXPECT_EQ(findToken(known(), "ci")->id, one->row.id);
  EXPECT_EQ(findToken(known(), one->row.id)->name, "ci");
  EXPECT_EQ(findToken(known(), "nobody").error().code, Code::kNotFound);
  const auto two = createToken(database_, {.name = "ci", .user = "", .namespaces = {}}, 11);
  const auto either = findToken(known(), "ci");
  ASSERT_FALSE(either);
  EXPECT_EQ(either.error().code, Code::kConflict);
  EXPECT_THAT(either.error().message, AllOf(HasSubstr(one->row.id), HasSubstr(two->row.id)));
  ASSERT_TRUE(revokeToken(database_, one->row.id, 12));
  EXPECT_EQ(findToken(known(), "ci")->id, two->row.id);
  ASSERT_TRUE(revokeToken(database_, two->row.id, 12));
  EXPECT_EQ(findToken(known(), "ci").error().code, Code::kConflict);
}

}  // namespace
}  // namespace cay::hub
