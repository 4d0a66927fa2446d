#include "net/status.h"

#include <gtest/gtest.h>

namespace cay::net {
namespace {

TEST(Status, EveryCodeHasAStatusWithAName) {
  for (int i = 0; i <= static_cast<int>(kLastCode); ++i) {
    const int status = httpStatus(static_cast<Code>(i));
    EXPECT_GE(status, 400);
    EXPECT_NE(reasonPhrase(status), "Unknown") << status;
  }
}

TEST(Status, StatusesOfTheHubHaveNames) {
  for (const int status : {401, 403, 407, 421, 501, 507}) {
    EXPECT_NE(reasonPhrase(status), "Unknown") << status;
  }
}

TEST(Status, ErrorBodiesAreAsciiJsonWhateverTheMessage) {
  EXPECT_EQ(errorBody("say \"no\""), R"({"error":"say \"no\""})");
  EXPECT_EQ(errorBody("\xC3\xA9 \xFF"), "{\"error\":\"\\u00e9 \\ufffd\"}");
}

}  // namespace
}  // namespace cay::net
