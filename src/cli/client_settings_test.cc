#include "cli/client_settings.h"

#include <gtest/gtest.h>

#include <map>

namespace cay::cli {
namespace {

ClientFacts facts() {
  return {.api = "http://127.0.0.1:7340",
          .domain = "cay.localhost",
          .userToken = "hf_cayuser",
          .proxyToken = "",
          .bundle = "/s/ca/bundle.pem",
          .hashedFolder = "",
          .noProxy = ""};
}

using Map = std::map<std::string, std::optional<std::string>>;
Map mapOf(const ClientFacts& given) {
  Map map;
  for (const Setting& setting : clientSettings(given)) {
    EXPECT_FALSE(map.contains(setting.name)) << setting.name << " is there twice";
    map[setting.name] = setting.value;
  }
  return map;
}

TEST(ClientSettings, NamesThatResolveNeedNoProxy) {
  EXPECT_EQ(mapOf(facts()), (Map{{"HF_ENDPOINT", "http://127.0.0.1:7340"},
                                 {"HF_TOKEN", "hf_cayuser"},
                                 {"SSL_CERT_FILE", "/s/ca/bundle.pem"}}));
}

TEST(ClientSettings, OtherNamesAreReachedThroughTheHub) {
  ClientFacts given = facts();
  given.proxyToken = "hf_cayproxy";
  given.noProxy = "internal.example,localhost";
  const std::string proxy = "http://cay:hf_cayproxy@127.0.0.1:7340";
  const std::string noProxy = "internal.example,127.0.0.1";
  EXPECT_EQ(mapOf(given), (Map{{"HF_ENDPOINT", "http://127.0.0.1:7340"},
                               {"HF_TOKEN", "hf_cayuser"},
                               {"SSL_CERT_FILE", "/s/ca/bundle.pem"},
                               {"HTTPS_PROXY", proxy},
                               {"https_proxy", proxy},
                               {"NO_PROXY", noProxy},
                               {"no_proxy", noProxy}}));
}

TEST(ClientSettings, AProxyOfTheMachineIsKeptOutOfOurNames) {
  ClientFacts given = facts();
  given.hasProxy = true;
  given.noProxy = "internal.example";
  const Map map = mapOf(given);
  EXPECT_EQ(map.at("NO_PROXY"), "internal.example,127.0.0.1,cay.localhost");
  EXPECT_EQ(map.at("no_proxy"), map.at("NO_PROXY"));
  EXPECT_FALSE(map.contains("HTTPS_PROXY"));
}

TEST(ClientSettings, AFolderOfCertificatesNeedsTheFileGone) {
  ClientFacts given = facts();
  given.bundle.clear();
  given.hashedFolder = "/s/ca/hashed";
  const Map map = mapOf(given);
  EXPECT_EQ(map.at("SSL_CERT_DIR"), "/s/ca/hashed");
  EXPECT_EQ(map.at("SSL_CERT_FILE"), std::nullopt);
}

TEST(ClientSettings, AnOwnCertificateLeavesTrustAlone) {
  ClientFacts given = facts();
  given.bundle.clear();
  EXPECT_FALSE(mapOf(given).contains("SSL_CERT_FILE"));
  EXPECT_FALSE(mapOf(given).contains("SSL_CERT_DIR"));
}

TEST(NoProxy, DropsWhatCoversTheDomain) {
  const auto without = [](std::string_view current) {
    return noProxyWithout(current, "cay.localhost", "127.0.0.1");
  };
  for (const char* entry :
       {"", "*", "localhost", ".localhost", "*.localhost", "LOCALHOST", "cay.localhost",
        ".cay.localhost", "*.cay.localhost", "x--1.cay.localhost", "localhost:7343",
        "https://localhost", " localhost "}) {
    EXPECT_EQ(without(entry), "127.0.0.1") << entry;
  }
  EXPECT_EQ(without("a.example,10.0.0.0/8,::1"), "a.example,10.0.0.0/8,127.0.0.1");
  EXPECT_EQ(without("notlocalhost,127.0.0.1, b"), "notlocalhost,b,127.0.0.1");
  EXPECT_EQ(noProxyWithout("localhost,a", "hub.example", "x"), "localhost,a,x");
}

TEST(Names, AreAskedOfTheMachine) {
  EXPECT_FALSE(namesResolve("no-such-domain.invalid"));
}

}  // namespace
}  // namespace cay::cli
