#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace cay {
namespace {

TEST(Ids, AreUniqueAndNeverLookLikeNumbers) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = newId("x");
    EXPECT_TRUE(isId("x", id)) << id;
    EXPECT_EQ(id.find_first_not_of("0123456789"), 0U);
    EXPECT_TRUE(seen.insert(id).second);
  }
}

TEST(Ids, OnlyOwnShapeIsAccepted) {
  EXPECT_FALSE(isId("x", "x-0123456789abcde"));
  EXPECT_FALSE(isId("x", "x-0123456789abcdeg"));
  EXPECT_FALSE(isId("x", "p-0123456789abcdef"));
  EXPECT_FALSE(isId("x", "x-../../../etc/pas"));
  EXPECT_FALSE(isId("x", ""));
}

TEST(Ids, RandomHexHasTheLengthAskedFor) {
  EXPECT_EQ(randomHex(32).size(), 64U);
  EXPECT_EQ(randomHex(100).size(), 200U);
  EXPECT_NE(randomHex(16), randomHex(16));
}

TEST(Ids, ConstantTimeComparisonIsExact) {
  EXPECT_TRUE(equalConstantTime("secret", "secret"));
  EXPECT_FALSE(equalConstantTime("secret", "secreT"));
  EXPECT_FALSE(equalConstantTime("secret", "secre"));
  EXPECT_FALSE(equalConstantTime("", "s"));
}

TEST(Ids, FingerprintTellsTextsApart) {
  EXPECT_EQ(fingerprint("a"), fingerprint("a"));
  EXPECT_NE(fingerprint("a"), fingerprint("b"));
  EXPECT_NE(fingerprint(""), fingerprint(std::string(1, '\0')));
  EXPECT_EQ(fingerprint("a").size(), 32U);
}

}  // namespace
}  // namespace cay
