#include "hub/previous_proxy.h"

#include <gmock/gmock.h>

#include <map>

#include "base/text.h"

namespace cay::hub {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<std::optional<PreviousProxy>> from(const std::map<std::string, std::string>& variables) {
  return previousProxy([&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

PreviousProxy proxyOf(const std::string& url, const std::string& without = {}) {
  const auto proxy = from({{"https_proxy", url}, {"no_proxy", without}});
  EXPECT_TRUE(proxy && *proxy) << url;
  return proxy && *proxy ? **proxy : PreviousProxy{};
}

TEST(PreviousProxy, IsReadFromTheEnvironment) {
  EXPECT_EQ(from({}).value(), std::nullopt);
  EXPECT_EQ(from({{"https_proxy", ""}}).value(), std::nullopt);
  const PreviousProxy proxy = proxyOf("http://proxy.example:3128/");
  EXPECT_EQ(proxy.host, "proxy.example");
  EXPECT_EQ(proxy.port, 3128);
  EXPECT_EQ(proxy.authorization, "");
  EXPECT_EQ(proxyOf("proxy.example").port, 80);
  EXPECT_EQ(proxyOf("http://[::1]:8080").host, "::1");
  EXPECT_EQ(proxyOf("http://u:p%40ss@h:1").authorization, "Basic " + base64Encode("u:p@ss"));
  EXPECT_EQ(proxyOf("http://u@h:1").authorization, "Basic " + base64Encode("u:"));
  const auto either = from({{"HTTPS_PROXY", "a:1"}, {"https_proxy", "b:2"}, {"ALL_PROXY", "c:3"}});
  EXPECT_EQ(either.value()->host, "b");
  EXPECT_EQ(from({{"ALL_PROXY", "c:3"}}).value()->host, "c");
}

// Whoever has run `cay env` before starting a hub names the hub itself, or another one.
TEST(PreviousProxy, IsNoneOfOurs) {
  EXPECT_EQ(from({{"HTTPS_PROXY", "http://cay:hf_cay0123@127.0.0.1:7340"}}).value(), std::nullopt);
}

TEST(PreviousProxy, ThatCannotBeUsedIsSaidWithoutItsPassword) {
  for (const char* url : {"socks5://u:secret@h:1", "https://u:secret@h:1", "http://u:secret@:1",
                          "http://u:secret@h:0", "http://u:secret%@h:1", "http://u:secret@h:x"}) {
    const auto proxy = from({{"https_proxy", url}});
    ASSERT_FALSE(proxy) << url;
    EXPECT_EQ(proxy.error().code, Code::kInvalid);
    EXPECT_THAT(proxy.error().message, Not(HasSubstr("secret")));
  }
}

TEST(PreviousProxy, IsNotForWhatNoProxyNames) {
  const PreviousProxy proxy =
      proxyOf("p:1", "example.com, .corp.example,10.1.2.3,only.port:8443,[::1],");
  for (const char* host : {"example.com", "EXAMPLE.com", "a.example.com", "corp.example",
                           "x.corp.example", "10.1.2.3", "::1", "[::1]"}) {
    EXPECT_FALSE(proxy.isFor(host, 443)) << host;
  }
  for (const char* host : {"badexample.com", "example.com.evil", "10.1.2.30", "110.1.2.3", "com"}) {
    EXPECT_TRUE(proxy.isFor(host, 443)) << host;
  }
  EXPECT_TRUE(proxy.isFor("only.port", 443));
  EXPECT_FALSE(proxy.isFor("only.port", 8443));
  EXPECT_FALSE(proxyOf("p:1", "*").isFor("anything", 1));
}

}  // namespace
}  // namespace cay::hub
