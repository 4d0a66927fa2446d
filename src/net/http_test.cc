#include "net/http.h"

#include <gmock/gmock.h>

namespace cay::net {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Fields, KeepOrderAndDuplicatesAndCompareNamesWithoutCase) {
  Fields fields;
  fields.add("Set-Cookie", "a=1");
  fields.add("X-Other", "x");
  fields.add("set-cookie", "b=2");
  EXPECT_EQ(fields.get("SET-COOKIE"), "a=1");
  EXPECT_EQ(fields.count("Set-Cookie"), 2U);
  EXPECT_EQ(fields.get("absent"), std::nullopt);
  fields.erase("Set-Cookie");
  EXPECT_EQ(fields.size(), 1U);
}

TEST(Fields, FindTokensInListsOfAnyField) {
  Fields fields;
  fields.add("Connection", "keep-alive, Upgrade");
  fields.add("Connection", " x-token ");
  EXPECT_TRUE(fields.hasToken("connection", "upgrade"));
  EXPECT_TRUE(fields.hasToken("connection", "X-Token"));
  EXPECT_FALSE(fields.hasToken("connection", "keep"));
}

TEST(ListElements, SkipsEmptyOnes) {
  EXPECT_THAT(listElements(" a ,, b,"), ElementsAre("a", "b"));
  EXPECT_TRUE(listElements("").empty());
}

TEST(Query, DecodesNamesAndValuesAndTheFirstWins) {
  const auto query = Query::parse("path=%2Ftmp%2Fa+b&x=1&&path=other&bare&%61=%C3%A9");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->get("path"), "/tmp/a b");
  EXPECT_EQ(query->get("bare"), "");
  EXPECT_EQ(query->get("a"), "\xC3\xA9");
  EXPECT_EQ(query->get("missing"), std::nullopt);
}

TEST(Query, RepeatedNamesKeepTheirOrder) {
  const auto query = Query::parse("stage=B&label=k%3Dv&stage=A&label=");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->all("stage"), (std::vector<std::string_view>{"B", "A"}));
  EXPECT_EQ(query->all("label"), (std::vector<std::string_view>{"k=v", ""}));
  EXPECT_TRUE(query->all("none").empty());
}

TEST(Query, RefusesBrokenEscapes) {
  for (const char* raw : {"a=%", "a=%4", "%zz=1", "a=%4g"}) {
    const auto query = Query::parse(raw);
    ASSERT_FALSE(query) << raw;
    EXPECT_EQ(query.error().code, Code::kInvalid);
  }
}

TEST(Query, NumbersAndFlagsNameTheParameterThatIsWrong) {
  const auto query = Query::parse("n=12&bad=1x&neg=-1&on=1&off=false&maybe=perhaps");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->getUint("n").value(), 12U);
  EXPECT_EQ(query->getUint("none").value(), std::nullopt);
  EXPECT_THAT(query->getUint("bad").error().message, HasSubstr("'bad'"));
  EXPECT_FALSE(query->getUint("neg"));
  EXPECT_EQ(query->getFlag("on"), true);
  EXPECT_EQ(query->getFlag("off"), false);
  EXPECT_EQ(query->getFlag("none"), false);
  EXPECT_THAT(query->getFlag("maybe").error().message, HasSubstr("'maybe'"));
}

}  // namespace
}  // namespace cay::net
