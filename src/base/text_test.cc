#include "base/text.h"

#include <gtest/gtest.h>

namespace cay {
namespace {

std::string decodeInPieces(std::string_view bytes, size_t piece) {
  Utf8Decoder decoder;
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += piece) decoder.feed(bytes.substr(at, piece), out);
  decoder.flush(out);
  return out;
}

TEST(Utf8, IsDecodedAlikeHoweverItIsCut) {
  const std::string inputs[] = {"plain", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 mixed \xC3\xA9",
                                "\xFF\xC3(\xE2\x82(\xF0\x9F\x98(\xED\xA0\x80\xC0\xAF\xF5\x80",
                                "ends early \xF0\x9F\x98"};
  for (const std::string& input : inputs) {
    const std::string whole = toValidUtf8(input);
    EXPECT_TRUE(isValidUtf8(whole));
    for (size_t piece = 1; piece <= input.size(); ++piece) {
      EXPECT_EQ(decodeInPieces(input, piece), whole) << piece;
    }
  }
}

TEST(Utf8, BrokenPartsBecomeOneReplacementEach) {
  EXPECT_EQ(toValidUtf8("a\xFF"
                        "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(toValidUtf8("\xE2\x82("), "\xEF\xBF\xBD(");
  EXPECT_EQ(toValidUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(toValidUtf8("x\xC3"), "x\xEF\xBF\xBD");
}

TEST(Utf8, AnUnfinishedCharacterWaits) {
  Utf8Decoder decoder;
  std::string out;
  decoder.feed("\xC3", out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(decoder.pending(), 1U);
  decoder.feed("\xA9", out);
  EXPECT_EQ(out, "\xC3\xA9");
  EXPECT_EQ(decoder.pending(), 0U);
}

TEST(Text, PercentDecodingRefusesBrokenEscapes) {
  EXPECT_EQ(percentDecode("a%20b+%FF").value(), "a b+\xFF");
  EXPECT_FALSE(percentDecode("%"));
  EXPECT_FALSE(percentDecode("%2"));
  EXPECT_FALSE(percentDecode("%zz"));
  EXPECT_EQ(percentEncode("a b/\xFF", "/"), "a%20b/%FF");
}

TEST(Text, Base64) {
  EXPECT_EQ(base64Encode(""), "");
  EXPECT_EQ(base64Encode("f"), "Zg==");
  EXPECT_EQ(base64Encode("fo"), "Zm8=");
  EXPECT_EQ(base64Encode("foo"), "Zm9v");
  EXPECT_EQ(base64Encode("\xFF\xFE"), "//4=");
}

TEST(Text, NumbersAreWholeAndUnsigned) {
  EXPECT_EQ(parseUint("42").value(), 42U);
  for (const char* bad : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "99999999999999999999"}) {
    EXPECT_FALSE(parseUint(bad)) << bad;
  }
}

TEST(Text, Durations) {
  EXPECT_EQ(parseDurationMs("90").value(), 90'000);
  EXPECT_EQ(parseDurationMs("90s").value(), 90'000);
  EXPECT_EQ(parseDurationMs("10m").value(), 600'000);
  EXPECT_EQ(parseDurationMs("1.5h").value(), 5'400'000);
  EXPECT_EQ(parseDurationMs("250ms").value(), 250);
  EXPECT_EQ(parseDurationMs("0").value(), 0);
  for (const char* bad : {"", "-1", "abc", "1x", "inf", "nan", "1e30d", "10 m"}) {
    EXPECT_FALSE(parseDurationMs(bad)) << bad;
  }
}

TEST(Text, QuotingIsSafeInALog) {
  EXPECT_EQ(quoted("a'b\n\xFF\\"), "'a\\'b\\x0a\\xff\\\\'");
  EXPECT_EQ(quoted("abcdef", 3), "'abc'...");
}

TEST(Text, CaseAndSpace) {
  EXPECT_TRUE(equalIgnoreCase("Host", "hOST"));
  EXPECT_FALSE(equalIgnoreCase("Host", "Hosts"));
  EXPECT_EQ(trim(" \ta b\t "), "a b");
}

TEST(Text, WordsAreWhatIsBetweenSpaces) {
  EXPECT_EQ(words("  a bc\t\nd "), (std::vector<std::string_view>{"a", "bc", "d"}));
  EXPECT_TRUE(words(" \n").empty());
}

TEST(Text, SplitsAtEverySeparator) {
  EXPECT_EQ(split("a,b,", ','), (std::vector<std::string_view>{"a", "b", ""}));
  EXPECT_EQ(split("", ','), (std::vector<std::string_view>{""}));
}

}  // namespace
}  // namespace cay
