#include "hub/tokens.h"

#include <gtest/gtest.h>

#include <set>

#include "base/sha256.h"

namespace cay::hub {
namespace {

constexpr int64_t kNow = 1'767'225'600'000;

class TokensTest : public ::testing::Test {
 protected:
  // Adds one to those that are known; gives its secret.
  std::string add(TokenWish wish, int64_t revokedMs = 0) {
    MadeToken made = makeToken(std::move(wish), kNow);
    made.row.revokedMs = revokedMs;
    identities_.tokens.push_back(made.row);
    tokens_.replace(identities_);
    return made.secret;
  }

  Identities identities_{.principals = {{.id = "p1", .name = "alice", .type = "user"},
                                        {.id = "p2", .name = "bob", .type = "user"}},
                         .tokens = {}};
  Tokens tokens_;
};

TEST_F(TokensTest, SecretsAreLongUniqueAndKeptAsTheirHashOnly) {
  std::set<std::string> secrets;
  for (int i = 0; i < 100; ++i) {
    const MadeToken made = makeToken({.name = "n", .principal = "p1", .namespaces = {}}, kNow);
    EXPECT_TRUE(made.secret.starts_with(kTokenPrefix));
    EXPECT_GE(made.secret.size(), kTokenPrefix.size() + 40);
    EXPECT_TRUE(secrets.insert(made.secret).second);
    EXPECT_EQ(made.row.hash, sha256Hex(made.secret));
    EXPECT_TRUE(made.secret.ends_with(made.row.hint));
    EXPECT_EQ(made.row.hint.size(), 4U);
    EXPECT_EQ(made.row.createdMs, kNow);
  }
}

TEST_F(TokensTest, AGoodTokenTellsWhoCalls) {
  const std::string alice = add({.name = "a", .principal = "p1", .namespaces = {"team"}});
  const std::string bob =
      add({.name = "b", .role = Role::kAdmin, .principal = "p2", .namespaces = {}});
  const auto caller = tokens_.check(alice, kNow);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->principalId, "p1");
  EXPECT_EQ(caller->name, "alice");
  EXPECT_EQ(caller->role, Role::kUser);
  EXPECT_EQ(caller->tokenId, identities_.tokens[0].id);
  EXPECT_EQ(tokens_.check(bob, kNow)->role, Role::kAdmin);
}

TEST_F(TokensTest, RolesDecideAboutNamespaces) {
  const Caller user{"t", "p", "alice", Role::kUser, {"team"}};
  EXPECT_TRUE(user.may("alice"));
  EXPECT_TRUE(user.may("team"));
  EXPECT_FALSE(user.may("bob"));
  EXPECT_FALSE(user.may("Alice"));
  EXPECT_FALSE(user.may(""));
  const Caller admin{"t", "p", "root", Role::kAdmin, {}};
  EXPECT_TRUE(admin.may("bob"));
  const Caller proxy{"t", "p", "alice", Role::kProxy, {"team"}};
  EXPECT_FALSE(proxy.may("alice"));
  EXPECT_FALSE(proxy.may("team"));
}

TEST_F(TokensTest, OtherTokensOpenNothingAndSayTheSame) {
  const std::string good =
      add({.name = "a", .principal = "p1", .namespaces = {}, .expiresMs = kNow + 1000});
  const std::string revoked = add({.name = "b", .principal = "p1", .namespaces = {}}, kNow - 1);
  const std::string nobodys = add({.name = "c", .principal = "p9", .namespaces = {}});
  EXPECT_TRUE(tokens_.check(good, kNow + 999));
  const auto unknown = tokens_.check("hf_cay00", kNow);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Code::kDenied);
  for (const auto& refused :
       {tokens_.check(good, kNow + 1000), tokens_.check(revoked, kNow),
        tokens_.check(nobodys, kNow), tokens_.check("", kNow),
        tokens_.check(good.substr(0, good.size() - 1), kNow), tokens_.check(good + "0", kNow),
        tokens_.check(identities_.tokens[0].hash, kNow)}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, unknown.error().message);
  }
}

TEST_F(TokensTest, AnUnknownRoleOpensNothing) {
  const std::string secret = add({.name = "a", .principal = "p1", .namespaces = {}});
  identities_.tokens[0].role = "superuser";
  tokens_.replace(identities_);
  EXPECT_FALSE(tokens_.check(secret, kNow));
}

TEST_F(TokensTest, RolesHaveNames) {
  for (const Role role : {Role::kAdmin, Role::kUser, Role::kProxy}) {
    EXPECT_EQ(roleOf(roleName(role)), role);
  }
  EXPECT_FALSE(roleOf("Admin"));
}

}  // namespace
}  // namespace cay::hub
