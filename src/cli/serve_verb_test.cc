#include "cli/serve_verb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "testing/temp_dir.h"

namespace cay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Parsed {
  hub::ServeOptions options;
  std::string error;
};

Parsed parse(std::vector<std::string> arguments) {
  Parsed parsed;
  CLI::App app("serve");
  addServeOptions(app, parsed.options);
  std::ranges::reverse(arguments);
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    parsed.error = error.what();
    return parsed;
  }
  if (auto whole = completeServeOptions(parsed.options); !whole) {
    parsed.error = whole.error().message;
  }
  return parsed;
}

TEST(ServeOptions, HaveDefaults) {
  const auto [options, error] = parse({});
  EXPECT_EQ(error, "");
  EXPECT_EQ(options.port, 7340);
  EXPECT_EQ(options.tlsPort, 7343);
  EXPECT_EQ(options.domain, "cay.localhost");
  EXPECT_THAT(options.listen, ElementsAre("127.0.0.1", "::1"));
  EXPECT_EQ(options.upstream, "https://huggingface.co");
  EXPECT_TRUE(options.tunnel);
  EXPECT_FALSE(options.endJobs);
  EXPECT_EQ(options.keepLogsDays, 7U);
  EXPECT_EQ(options.keepJobs, 10'000U);
  EXPECT_EQ(options.network, engine::Outbound::kAuto);
}

TEST(ServeOptions, AreRead) {
  const cay::testing::TempDir temp;
  const std::string file = temp.write("file", "x");
  const auto [options, error] = parse({"--port",
                                       "0",
                                       "--tls-port=1",
                                       "--listen",
                                       "10.0.0.1",
                                       "--listen",
                                       "::",
                                       "--domain",
                                       "hub.example",
                                       "--tls-cert",
                                       file,
                                       "--tls-key",
                                       file,
                                       "--upstream",
                                       "http://127.0.0.1:8080",
                                       "--upstream-token-file",
                                       file,
                                       "--no-tunnel",
                                       "--dns",
                                       "1.1.1.1",
                                       "--dns",
                                       "9.9.9.9",
                                       "--network",
                                       "slirp",
                                       "--keep-logs-days",
                                       "1",
                                       "--keep-jobs",
                                       "5",
                                       "--end-jobs",
                                       "--flavors",
                                       file,
                                       "--cay-host",
                                       "/bin/sh",
                                       "--log-level",
                                       "debug"});
  EXPECT_EQ(error, "");
  EXPECT_EQ(options.port, 0);
  EXPECT_EQ(options.tlsPort, 1);
  EXPECT_THAT(options.listen, ElementsAre("10.0.0.1", "::", "127.0.0.1"));
  EXPECT_EQ(options.domain, "hub.example");
  EXPECT_EQ(options.tlsCert, file);
  EXPECT_EQ(options.tlsKey, file);
  EXPECT_EQ(options.upstream, "http://127.0.0.1:8080");
  EXPECT_EQ(options.upstreamTokenFile, file);
  EXPECT_FALSE(options.tunnel);
  EXPECT_THAT(options.dns, ElementsAre("1.1.1.1", "9.9.9.9"));
  EXPECT_EQ(options.network, engine::Outbound::kSlirp);
  EXPECT_EQ(options.keepLogsDays, 1U);
  EXPECT_EQ(options.keepJobs, 5U);
  EXPECT_TRUE(options.endJobs);
  EXPECT_EQ(options.flavors, file);
  EXPECT_EQ(options.cayHost, "/bin/sh");
  EXPECT_EQ(options.logLevel, "debug");
}

TEST(ServeOptions, BadOnesAreNamed) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--port", "65536"}, "--port: '65536' is not a number from 0 to 65535"},
      {{"--port", "-1"}, "--port"},
      {{"--port", "0x10"}, "--port: '0x10' is not"},
      {{"--port", ""}, "--port"},
      {{"--port"}, "--port"},
      {{"--tls-port", "7340"}, "cannot be the same"},
      {{"--listen", "example.com"}, "--listen: 'example.com' is not an IP address"},
      {{"--dns", "::1"}, "--dns: '::1' is not an IPv4 address"},
      {{"--network", "wifi"}, "--network: 'wifi' is not auto, kernel, slirp or none"},
      {{"--upstream", "huggingface.co"}, "--upstream"},
      {{"--upstream", "https://"}, "--upstream"},
      {{"--upstream", "https://u:p@h"}, "--upstream"},
      {{"--upstream", "https://h/path"}, "--upstream"},
      {{"--keep-logs-days", "0"}, "--keep-logs-days"},
      {{"--keep-jobs", "many"}, "--keep-jobs"},
      {{"--tls-cert", "/etc/passwd"}, "--tls-cert and --tls-key go together"},
      {{"--tls-key", "/etc/passwd"}, "--tls-cert and --tls-key go together"},
      {{"--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, "--tls-cert: "},
      {{"--flavors", "/nowhere"}, "--flavors: "},
      {{"--cay-host", "/etc/passwd"}, "--cay-host: '/etc/passwd' is not a program"},
      {{"--log-level", "loud"}, "--log-level"},
      {{"--loud"}, "--loud"},
  };
  for (const auto& [arguments, message] : cases) {
    EXPECT_THAT(parse(arguments).error, HasSubstr(message)) << arguments.front();
  }
}

TEST(ServeOptions, OthersComeByTlsOnly) {
  const std::vector<std::string> open{"--listen", "0.0.0.0"};
  EXPECT_THAT(parse(open).error, HasSubstr("--listen: others than this machine reach the hub by "
                                           "TLS only"));
  EXPECT_THAT(parse({"--listen", "::"}).error, HasSubstr("--tls-cert"));
  EXPECT_THAT(parse({"--listen", "0.0.0.0", "--domain", "a.localhost"}).error,
              HasSubstr("--domain"));
  EXPECT_EQ(parse({"--listen", "127.0.0.2"}).error, "");
  const auto named = parse({"--listen", "0.0.0.0", "--domain", "hub.example"});
  EXPECT_EQ(named.error, "");
  EXPECT_THAT(named.options.listen, ElementsAre("0.0.0.0", "::1"));
}

TEST(CayHost, IsLookedForBesideUsAndThenInThePath) {
  const cay::testing::TempDir temp;
  const auto program = [&](const char* folder) {
    std::filesystem::create_directory(temp.path() / folder);
    const std::string file = temp.write(std::string(folder) + "/cay-host", "#!/bin/sh\n");
    std::filesystem::permissions(file, std::filesystem::perms(0755));
    return file;
  };
  const std::string beside = program("beside");
  const std::string inPath = program("path");
  const std::string cay = (temp.path() / "beside/cay").string();
  const std::string elsewhere = (temp.path() / "cay").string();
  const std::string path = "/nowhere:" + (temp.path() / "path").string();
  EXPECT_EQ(findCayHost(cay, path).value(), beside);
  EXPECT_EQ(findCayHost(elsewhere, path).value(), inPath);
  EXPECT_EQ(findCayHost(elsewhere, "/nowhere:.:").error().code, Code::kNotFound);
  std::filesystem::permissions(inPath, std::filesystem::perms(0644));
  EXPECT_THAT(findCayHost(elsewhere, path).error().message, HasSubstr("--cay-host"));
}

}  // namespace
}  // namespace cay::cli
