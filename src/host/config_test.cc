#include "host/config.h"

#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace cay::host {
namespace {

std::string errorOf(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {}) {
  const auto config = parseConfig(arguments, environment);
  return config ? "" : config.error().message;
}

TEST(Config, EnvironmentIsReadAndFlagsWin) {
  const auto config = parseConfig({"--port", "8001", "--idle-timeout=10m"},
                                  {"SBX_PORT=8000", "SBX_TOKEN=t", "SBX_IDLE_TIMEOUT=90",
                                   "SBX_MAX_CONNECTIONS=7", "CAY_STATE=/s"})
                          .value();
  EXPECT_EQ(config.port, 8001);
  EXPECT_EQ(config.token, "t");
  EXPECT_EQ(config.idleTimeoutMs, 600'000);
  EXPECT_EQ(config.maxConnections, 7U);
  EXPECT_EQ(config.state, "/s");
}

TEST(Config, DefaultsAreThoseOfTheProtocol) {
  const auto config = parseConfig({}, {}).value();
  EXPECT_EQ(config.port, 49983);
  EXPECT_EQ(config.idleTimeoutMs, 0);
  EXPECT_EQ(config.maxConnections, 512U);
  EXPECT_EQ(config.logShape.headBytes + config.logShape.ringBytes, 16U << 20);
  EXPECT_FALSE(config.state.empty());
}

TEST(Config, WithoutATokenOnlyLoopbackIsListenedOn) {
  EXPECT_EQ(parseConfig({}, {})->listen, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(parseConfig({}, {"SBX_TOKEN=t"})->listen, (std::vector<std::string>{"0.0.0.0", "::"}));
  EXPECT_NE(errorOf({"--listen", "0.0.0.0"}).find("loopback"), std::string::npos);
  EXPECT_EQ(errorOf({"--listen", "127.0.0.2"}), "");
  EXPECT_EQ(errorOf({"--listen", "0.0.0.0"}, {"SBX_TOKEN=t"}), "");
}

TEST(Config, BadValuesAreNamedInOneLine) {
  const std::vector<std::vector<std::string>> bad = {
      {"--port", "70000"},
      {"--port", "-1"},
      {"--port", ""},
      {"--port"},
      {"--idle-timeout", "x"},
      {"--max-connections", "0"},
      {"--listen", "here"},
      {"--log-level", "loud"},
      {"--log-bytes-per-exec", "5"},
      {"--token-file", "/no"},
      {"--state", ""},
      {"--unknown"},
      {"stray"},
  };
  for (const auto& arguments : bad) {
    const std::string error = errorOf(arguments);
    EXPECT_FALSE(error.empty()) << arguments[0];
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
  EXPECT_NE(errorOf({}, {"SBX_PORT=abc"}).find("SBX_PORT"), std::string::npos);
  EXPECT_NE(errorOf({}, {"SBX_HOST_MODE=maybe"}).find("SBX_HOST_MODE"), std::string::npos);
  EXPECT_NE(errorOf({}, {"SBX_CAPACITY=0"}).find("SBX_CAPACITY"), std::string::npos);
  EXPECT_NE(errorOf({}, {"CAY_WALLS=paper"}).find("CAY_WALLS"), std::string::npos);
  EXPECT_NE(errorOf({}, {"CAY_IMAGES=here"}).find("CAY_IMAGES"), std::string::npos);
  EXPECT_NE(errorOf({}, {"CAY_TREE_KILL=magic"}).find("CAY_TREE_KILL"), std::string::npos);
  EXPECT_NE(errorOf({}, {"SBX_TOKEN=a b"}), "");
}

TEST(Config, HostModeByVariablesAndByFlags) {
  const auto dedicated = parseConfig({}, {"SBX_HOST_MODE=0"}).value();
  EXPECT_FALSE(dedicated.hostMode);
  const auto byVariables =
      parseConfig({}, {"SBX_HOST_MODE=1", "SBX_TOKEN=t", "SBX_CAPACITY=5", "CAY_IMAGES=/i",
                       "CAY_WALLS=restricted", "SBX_COMPAT_HOST_TOKEN=1"})
          .value();
  const auto byFlags = parseConfig({"--host-mode", "--capacity=5", "--images", "/i", "--walls",
                                    "restricted", "--compat-host-token"},
                                   {"SBX_TOKEN=t"})
                           .value();
  for (const Config& config : {byVariables, byFlags}) {
    EXPECT_TRUE(config.hostMode);
    EXPECT_EQ(config.capacity, 5U);
    EXPECT_EQ(config.images, "/i");
    EXPECT_EQ(config.walls, isolation::Mode::kRestricted);
    EXPECT_TRUE(config.compatHostToken);
  }
  const auto plain = parseConfig({"--host-mode", "--walls=auto"}, {"SBX_TOKEN=t"}).value();
  EXPECT_EQ(plain.capacity, 64U);
  EXPECT_EQ(plain.walls, std::nullopt);
  EXPECT_FALSE(plain.compatHostToken);
  EXPECT_NE(errorOf({"--host-mode"}).find("token"), std::string::npos);
}

TEST(Config, ATokenFileLosesItsLastNewline) {
  const testing::TempDir dir;
  EXPECT_EQ(parseConfig({"--token-file", dir.write("t", "secret\n")}, {})->token, "secret");
  EXPECT_NE(errorOf({"--token-file", dir.write("e", "\n")}).find("empty"), std::string::npos);
}

TEST(Config, CommandsGetTheEnvironmentWithoutWhatConfiguresTheHost) {
  EXPECT_EQ(commandEnvironment({"PATH=/bin", "SBX_TOKEN=t", "SBX_PORT=1", "CAY_STATE=/s", "A=b"}),
            (std::vector<std::string>{"PATH=/bin", "A=b"}));
}

}  // namespace
}  // namespace cay::host
