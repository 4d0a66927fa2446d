#include "hub/credentials.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace cay::hub {
namespace {

TEST(Credentials, AreTheSecretOfEitherScheme) {
  EXPECT_EQ(secretIn("Bearer hf_cay1"), "hf_cay1");
  EXPECT_EQ(secretIn("bearer   x"), "x");
  for (const std::string secret : {"a", "ab", "abc", "a:b", "hf_cay0123456789", "\xff\xfe"}) {
    EXPECT_EQ(secretIn("Basic " + base64Encode("cay:" + secret)), secret);
    EXPECT_EQ(secretIn("BASIC " + base64Encode(":" + secret)), secret);
  }
  EXPECT_EQ(secretIn("Basic " + base64Encode("cay:")), "");
}

TEST(Credentials, AreNotMadeUp) {
  for (const std::string& value : {"", "Bearer", "Bearer ", "Bearer a b", "hf_cay1", "Digest x",
                                   "Basic", "Basic !!!!", "Basic Y2F5"}) {
    EXPECT_EQ(secretIn(value), std::nullopt) << value;
  }
}

TEST(Credentials, AreOursUnderEveryScheme) {
  for (const std::string& value :
       {std::string("Bearer hf_cay12"), std::string("hf_cay12"),
        std::string("Token token=hf_cay12"), "Basic " + base64Encode("a:hf_cay12"),
        "Basic " + base64Encode("hf_cay12:"), "Weird " + base64Encode("ab:hf_cay12") + " more"}) {
    EXPECT_TRUE(holdsOurToken(value)) << value;
  }
  for (const std::string& value : {std::string("Bearer hf_abcdef"), std::string("Bearer HF_CAY"),
                                   "Basic " + base64Encode("a:secret"), std::string()}) {
    EXPECT_FALSE(holdsOurToken(value)) << value;
  }
}

}  // namespace
}  // namespace cay::hub
