#include "files/path_text.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace cay::files {
namespace {

TEST(PathText, ValidNamesAreShownAsTheyAre) {
  for (const char* name : {"plain", "100%", "a%FFb", "h\xC3\xA9", "\xE2\x80\xA8"}) {
    EXPECT_EQ(shown(name), name);
    EXPECT_EQ(unshown(std::string("/x") + "/plain"), std::nullopt);
  }
}

TEST(PathText, OtherNamesAreShownWithEscapesThatLeadBack) {
  EXPECT_EQ(shown("/tmp/\xFF"), "/tmp/%FF");
  EXPECT_EQ(shown("/tmp/50%\xC3"), "/tmp/50%25%C3");
  EXPECT_EQ(shown("\xC3\xA9\xE9"), "\xC3\xA9%E9");
  for (const char* name :
       {"/tmp/\xFF", "/tmp/50%\xC3", "\xC3\xA9\xE9", "\xED\xA0\x80", "%41\x80"}) {
    EXPECT_TRUE(isValidUtf8(shown(name)));
    EXPECT_EQ(unshown(shown(name)), name);
  }
}

TEST(PathText, TextThatShownNeverMakesIsLeftAlone) {
  for (const char* text : {"%41", "%ff", "a%FF%", "100%", "%C3%A9", "%41%FF"}) {
    EXPECT_EQ(unshown(text), std::nullopt) << text;
  }
}

TEST(PathText, ClampedPathsDoNotLeadAboveTheTop) {
  EXPECT_EQ(clamped(""), "/");
  EXPECT_EQ(clamped("a"), "/a");
  EXPECT_EQ(clamped("//a/./b//"), "/a/b");
  EXPECT_EQ(clamped("/a/../b"), "/b");
  EXPECT_EQ(clamped("../../x"), "/x");
  EXPECT_EQ(clamped("a/b/../../../../c/.."), "/");
  EXPECT_EQ(clamped("..a/b.."), "/..a/b..");
}

}  // namespace
}  // namespace cay::files
