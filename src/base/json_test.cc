#include "base/json.h"

#include <gtest/gtest.h>

namespace cay::json {
namespace {

std::string asString(std::string_view utf8) {
  std::string out;
  appendString(out, utf8);
  return out;
}

TEST(Json, ErrorsSayWhere) {
  const auto bad = parse("{\n  \"a\": nope\n}");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, Code::kInvalid);
  EXPECT_NE(bad.error().message.find("line 2"), std::string::npos) << bad.error().message;
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse("{} x"));
  EXPECT_FALSE(parse("{\"a\":1"));
  EXPECT_FALSE(parse(std::string(1000, '[')));
}

TEST(Json, NumbersThatNoDoubleHoldsAreRefused) {
  EXPECT_TRUE(parse("1e308"));
  for (const char* text : {"1e400", "-1e400", R"({"env":{"A":[1e999]}})"}) {
    const auto bad = parse(text);
    ASSERT_FALSE(bad) << text;
    EXPECT_EQ(bad.error().code, Code::kInvalid);
  }
}

TEST(Json, OutputIsAsciiOnly) {
  // U+2028, U+0085 and U+1F600 would split or leave the ASCII range.
  EXPECT_EQ(asString("a\xE2\x80\xA8"
                     "b\xC2\x85\xF0\x9F\x98\x80"),
            R"("a\u2028b\u0085\ud83d\ude00")");
  EXPECT_EQ(asString("\"\\\n\r\t\x01\x7f"), R"("\"\\\n\r\t\u0001\u007f")");
  const Value value(Object{{"k\xC3\xA9", "v\xE2\x80\xA9"}});
  EXPECT_EQ(json::serialize(value), R"({"k\u00e9":"v\u2029"})");
}

TEST(Json, WhatIsWrittenReadsBack) {
  const std::string text = "\xF0\x9F\x98\x80 \xE2\x82\xAC \xC3\xA9 \x7f \"\\";
  const auto back = parse(asString(text));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->get_string(), text);
}

TEST(Json, ScalarsBecomeTheTextAShellWants) {
  EXPECT_EQ(scalarText(*parse("true")).value(), "true");
  EXPECT_EQ(scalarText(*parse("1")).value(), "1");
  EXPECT_EQ(scalarText(*parse("-7")).value(), "-7");
  EXPECT_EQ(scalarText(*parse("18446744073709551615")).value(), "18446744073709551615");
  EXPECT_EQ(scalarText(*parse("1.5")).value(), "1.5");
  EXPECT_EQ(scalarText(*parse("\"x\"")).value(), "x");
  EXPECT_EQ(scalarText(*parse("null")).value(), "");
  EXPECT_FALSE(scalarText(*parse("[]")));
}

}  // namespace
}  // namespace cay::json
