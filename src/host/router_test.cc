#include "host/router.h"

#include <gtest/gtest.h>

#include "host/route.h"
#include "sandbox/activity.h"

namespace cay::host {
namespace {

TEST(Router, OnlyLoopbackNamesAreLoopback) {
  for (const char* host : {"localhost", "LOCALHOST:49983", "127.0.0.1", "127.0.0.1:80",
                           "127.1.2.3:1", "[::1]", "[::1]:49983", "job.cay.localhost:7343"}) {
    EXPECT_TRUE(isLoopbackHost(host)) << host;
  }
  for (const char* host : {"", "example.com", "127.0.0.1.example.com", "localhost.example.com",
                           "xlocalhost", "[::2]", "[::1", "10.0.0.1:80", "127.evil.com"}) {
    EXPECT_FALSE(isLoopbackHost(host)) << host;
  }
}

TEST(Router, PathsFallIntoSegments) {
  EXPECT_EQ(segments("/a/b"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_EQ(segments("/a//b/"), (std::vector<std::string_view>{"a", "b"}));
  EXPECT_TRUE(segments("/").empty());
}

int64_t fakeNow = 0;
int64_t fakeClock() {
  return fakeNow;
}

TEST(Activity, ARequestInProgressAndARunningProcessAreUse) {
  sandbox::Activity activity(0);
  EXPECT_EQ(activity.quietMs(1000, 0), 1000);
  {
    const sandbox::Activity::InUse request(activity, fakeClock);
    EXPECT_EQ(activity.quietMs(50'000, 0), 0);
    fakeNow = 60'000;
  }
  EXPECT_EQ(activity.quietMs(61'000, 0), 1000) << "the quiet begins at the request's end";
  EXPECT_EQ(activity.quietMs(90'000, 1), 0);
  EXPECT_EQ(activity.quietMs(91'000, 0), 1000) << "and at the process's end";
}

}  // namespace
}  // namespace cay::host
