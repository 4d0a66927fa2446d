#include "host/body_fields.h"

#include <gtest/gtest.h>

namespace cay::host {
namespace {

json::Object object(std::string_view text) {
  return bodyObject(text).value();
}

std::string errorOf(const auto& result) {
  if (result) return "";
  EXPECT_EQ(result.error().code, Code::kInvalid);
  return result.error().message;
}

TEST(BodyFields, ABodyIsAnObject) {
  EXPECT_TRUE(bodyObject("{}"));
  EXPECT_TRUE(bodyObject("  ", /*mayBeEmpty=*/true).value().empty());
  for (const char* bad : {"", " ", "[]", "1", "null", "{", "{} x"}) {
    EXPECT_NE(errorOf(bodyObject(bad)), "") << bad;
  }
  EXPECT_NE(errorOf(bodyObject("null", /*mayBeEmpty=*/true)), "");
}

TEST(BodyFields, NullIsAsIfItWereNotThere) {
  const json::Object body = object(R"({"a":null,"b":0})");
  EXPECT_EQ(field(body, "a"), nullptr);
  EXPECT_EQ(field(body, "c"), nullptr);
  EXPECT_NE(field(body, "b"), nullptr);
}

TEST(BodyFields, NumbersHaveBounds) {
  const json::Object body =
      object(R"({"one":1,"half":0.5,"big":18446744073709551615,"text":"1","truth":true})");
  EXPECT_EQ(number(body, "one", 0, 1, Numbers::kWhole).value(), 1.0);
  EXPECT_EQ(number(body, "half", 0, 1, Numbers::kAny).value(), 0.5);
  EXPECT_EQ(number(body, "none", 0, 1, Numbers::kAny).value(), std::nullopt);
  EXPECT_EQ(errorOf(number(body, "half", 0, 10, Numbers::kWhole)),
            "'half' must be a whole number from 0 to 10, not 5E-1");
  EXPECT_EQ(errorOf(number(body, "one", 2, 2.5, Numbers::kAny)),
            "'one' must be a number from 2 to 2.5E0, not 1");
  for (const char* name : {"big", "text", "truth"}) {
    EXPECT_TRUE(errorOf(number(body, name, 0, 100, Numbers::kAny)).contains(name));
  }
}

TEST(BodyFields, ALongValueIsShownShort) {
  const std::string error =
      std::unexpected<Error>(wrongValue("x", "small", json::Value(std::string(5000, 'y'))))
          .error()
          .message;
  EXPECT_TRUE(error.starts_with("'x' must be small, not \"yyy")) << error;
  EXPECT_LT(error.size(), 150U);
}

TEST(BodyFields, TextHasNoNul) {
  EXPECT_EQ(plainText(json::Value("a"), "x").value(), "a");
  EXPECT_TRUE(errorOf(plainText(json::Value(1), "x")).contains("'x'"));
  EXPECT_TRUE(errorOf(plainText(json::Value(std::string("a\0b", 3)), "x")).contains("NUL"));
}

TEST(BodyFields, VariablesReplaceAddAndTakeAway) {
  std::vector<std::string> env = {"A=1", "AB=2", "C=3"};
  ASSERT_TRUE(readEnvironment(object(R"({"env":{"A":"x","C":null,"D":2}})"), env));
  EXPECT_EQ(env, (std::vector<std::string>{"AB=2", "A=x", "D=2"}));
  ASSERT_TRUE(readEnvironment(object("{}"), env));
  EXPECT_EQ(env.size(), 3U);
  for (const char* bad : {R"({"env":5})", R"({"env":{"":1}})", R"({"env":{"A=":1}})",
                          R"({"env":{"A":[]}})", R"({"env":{"A":"\u0000"}})"}) {
    EXPECT_TRUE(errorOf(readEnvironment(object(bad), env)).contains("'env'")) << bad;
  }
}

}  // namespace
}  // namespace cay::host
