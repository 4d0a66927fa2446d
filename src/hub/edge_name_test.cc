#include "hub/edge_name.h"

#include <gtest/gtest.h>

namespace cay::hub {
namespace {

constexpr std::string_view kDomain = "cay.localhost";

TEST(EdgeNameTest, AHostNamesAJobAndAPort) {
  const EdgeName expected{.job = "6f0c1a", .port = 49983};
  for (const char* host : {"6f0c1a--49983.cay.localhost", "6f0c1a--49983.cay.localhost:7343",
                           "6F0C1A--49983.Cay.LOCALHOST", "6f0c1a--49983.cay.localhost.",
                           "6f0c1a--49983.cay.localhost.:443"}) {
    EXPECT_EQ(parseEdgeHost(host, kDomain), expected) << host;
  }
  EXPECT_EQ(parseEdgeHost("a--1.Example.org", "example.ORG"), (EdgeName{.job = "a", .port = 1}));
}

TEST(EdgeNameTest, NothingElseDoes) {
  for (const char* host :
       {"",
        ".",
        ":",
        "cay.localhost",
        ".cay.localhost",
        "a.cay.localhost",
        "a--.cay.localhost",
        "--1.cay.localhost",
        "a--0.cay.localhost",
        "a--01.cay.localhost",
        "a--65536.cay.localhost",
        "a--+1.cay.localhost",
        "a--1x.cay.localhost",
        "a---1.cay.localhost",
        "a--1--2.cay.localhost",
        "a_b--1.cay.localhost",
        "b.a--1.cay.localhost",
        "a--1.cay.localhost.evil.org",
        "a--1.evilcay.localhost",
        "a--1.xcay.localhost",
        "a--1cay.localhost",
        "a--1.cay.localhost:",
        "a--1.cay.localhost:0",
        "a--1.cay.localhost:80:80",
        "a--1.cay.localhost:99999",
        "a--1.cay.localhost..",
        "a--1.cay.localhost/x",
        "a--1.cay.localhost@x",
        " a--1.cay.localhost",
        "123456789012345678901234567890123456789012345678901--1.cay.localhost"}) {
    EXPECT_EQ(parseEdgeHost(host, kDomain), std::nullopt) << host;
  }
  const std::string_view zero("a--1\0.cay.localhost", 19);
  EXPECT_EQ(parseEdgeHost(zero, kDomain), std::nullopt);
}

TEST(EdgeNameTest, APathNamesThemToo) {
  const auto found = parseEdgePath("/x/6f0c1a--8000/some/path?x=1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, (EdgeName{.job = "6f0c1a", .port = 8000}));
  EXPECT_EQ(found->second, "/some/path?x=1");
  EXPECT_EQ(parseEdgePath("/x/a--1/")->second, "/");
  for (const char* path : {"", "/", "/x", "/x/", "/x/a--1", "/x/A--1/", "/x//", "/y/a--1/",
                           "x/a--1/", "/x/../a--1/", "/x/a--1?/", "/x/a%2d-1/"}) {
    EXPECT_EQ(parseEdgePath(path), std::nullopt) << path;
  }
}

TEST(EdgeNameTest, AUrlLeadsBackToItsName) {
  const EdgeName name{.job = "6f0c1a", .port = 8000};
  EXPECT_EQ(edgeUrl(name, kDomain, 7343), "https://6f0c1a--8000.cay.localhost:7343");
  EXPECT_EQ(edgeUrl(name, kDomain, 443), "https://6f0c1a--8000.cay.localhost");
  const std::string url = edgeUrl(name, kDomain, 7343);
  EXPECT_EQ(parseEdgeHost(std::string_view(url).substr(8), kDomain), name);
}

}  // namespace
}  // namespace cay::hub
