#include "hub/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace cay::hub {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'767'225'600'000;

class IdentityTest : public ::testing::Test {
 protected:
  IdentityTest() {
    Identities all{.principals = {{.id = "p1", .name = "alice", .type = "user"}}, .tokens = {}};
    for (const Role role : {Role::kUser, Role::kProxy}) {
      MadeToken made =
          makeToken({.name = "n", .role = role, .principal = "p1", .namespaces = {}}, kNow);
      all.tokens.push_back(made.row);
      (role == Role::kUser ? user_ : proxy_) = made.secret;
    }
    tokens_.replace(all);
  }

  [[nodiscard]] std::expected<Caller, ApiError> ask(
      std::initializer_list<std::string> authorizations) const {
    net::RequestHead head;
    for (const std::string& value : authorizations) head.fields.add("authorization", value);
    return callerOf(head, tokens_, kNow);
  }

  Tokens tokens_;
  std::string user_;
  std::string proxy_;
};

TEST_F(IdentityTest, TheBearerOfATokenIsItsPrincipal) {
  for (const std::string& scheme : {"Bearer ", "bearer ", "BEARER   "}) {
    const auto caller = ask({scheme + user_});
    ASSERT_TRUE(caller) << scheme;
    EXPECT_EQ(caller->name, "alice");
  }
}

TEST_F(IdentityTest, NoTokenIs401) {
  const auto refused = ask({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 401);
  const auto head = apiErrorHead(refused.error());
  EXPECT_EQ(head.fields.get("X-Error-Message"), "Authentication required");
  EXPECT_EQ(head.fields.get("WWW-Authenticate"), "Bearer");
}

// The field's text is what keeps huggingface_hub from calling it a RepositoryNotFoundError.
TEST_F(IdentityTest, AWrongTokenIs401WithTheWordsThatClientsKnow) {
  for (const auto& refused :
       {ask({"Bearer hf_cay00"}), ask({"Bearer "}), ask({"Bearer"}), ask({""}), ask({user_}),
        ask({"Basic " + user_}), ask({"Bearer" + user_}), ask({"Bearer " + user_ + " x"}),
        ask({"Bearer " + user_, "Bearer " + user_}), ask({"Bearer x", "Bearer " + user_})}) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().status, 401);
    EXPECT_EQ(apiErrorHead(refused.error()).fields.get("X-Error-Message"),
              "Invalid credentials in Authorization header");
  }
}

TEST_F(IdentityTest, ATokenOfTheProxyIs403) {
  const auto refused = ask({"Bearer " + proxy_});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 403);
  EXPECT_THAT(refused.error().message, HasSubstr("proxy"));
}

TEST_F(IdentityTest, AForeignNamespaceIs403) {
  const auto caller = ask({"Bearer " + user_});
  ASSERT_TRUE(caller);
  EXPECT_TRUE(mayUse(*caller, "alice"));
  const auto refused = mayUse(*caller, "bob\r\nX: y");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 403);
  const auto head = apiErrorHead(refused.error());
  EXPECT_THAT(std::string(*head.fields.get("X-Error-Message")), HasSubstr("namespace 'bob"));
}

TEST(ApiErrorTest, KindsOfFailureHaveTheirStatus) {
  EXPECT_EQ(apiErrorOf({Code::kNotFound, 0, "x"}).status, 404);
  EXPECT_EQ(apiErrorOf({Code::kInvalid, 0, "x"}).status, 400);
  EXPECT_EQ(apiErrorOf({Code::kExhausted, 0, "x"}).status, 503);
  EXPECT_EQ(apiErrorOf({Code::kExhausted, ENOSPC, "x"}).status, 507);
  EXPECT_EQ(apiErrorOf({Code::kExhausted, EDQUOT, "x"}).status, 507);
}

TEST(ApiErrorTest, TheFieldIsOneLineOfAscii) {
  const auto head = apiErrorHead({400, "a\r\nb\xC3\xA9 c\x7f" + std::string(1000, 'x'), ""});
  const std::string field(*head.fields.get("X-Error-Message"));
  EXPECT_TRUE(field.starts_with("a??b?? c?x"));
  EXPECT_EQ(field.size(), 500U);
}

}  // namespace
}  // namespace cay::hub
