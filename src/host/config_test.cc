#include "host/config.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "sys/io.h"
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

std::string number(const Fd& fd) {
  return std::to_string(fd.get());
}

TEST(Config, AnotherProgramSaysWhatToServe) {
  Startup startup;
  startup.token = "t";
  startup.idleTimeoutMs = 1'000;
  startup.lifetimeMs = 2'000;
  startup.endNote = "/n";
  startup.attached = AttachedSandbox{.folder = "/f"};
  Fd text = sys::memoryFile("startup", startupText(startup)).value();
  const Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto config =
      parseConfig({"--config-fd", number(text), "--listen-fd", number(listener)}, {"SBX_TOKEN=u"});
  EXPECT_EQ(::fcntl(text.get(), F_GETFD), -1) << "it is closed";
  (void)text.release();
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->token, "t");
  EXPECT_EQ(config->idleTimeoutMs, 1'000);
  EXPECT_EQ(config->lifetimeMs, 2'000);
  EXPECT_EQ(config->endNote, "/n");
  EXPECT_EQ(config->attached, startup.attached);
  EXPECT_EQ(config->listenFd, listener.get());
  EXPECT_FALSE(config->hostMode);
}

TEST(Config, AnotherProgramSettlesAPool) {
  Startup startup;
  startup.token = "t";
  startup.compatHostToken = true;
  startup.stateFolder = "/s";
  startup.pool =
      PoolSettings{.capacity = 5, .mostReady = 2, .mode = isolation::Mode::kUnprivileged};
  Fd text = sys::memoryFile("startup", startupText(startup)).value();
  const auto config = parseConfig({"--config-fd", number(text)}, {});
  (void)text.release();
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->hostMode);
  EXPECT_TRUE(config->compatHostToken);
  EXPECT_EQ(config->capacity, 5U);
  EXPECT_EQ(config->mostReady, 2U);
  EXPECT_EQ(config->walls, isolation::Mode::kUnprivileged);
  EXPECT_EQ(config->state, "/s");
  EXPECT_EQ(config->pool, startup.pool);
}

TEST(Config, DescriptorsThatAreNoneAreNamed) {
  for (const char* flag : {"--config-fd", "--listen-fd", "--ready-fd"}) {
    for (const char* value : {"0", "2", "-1", "x", "999999", "99999999999"}) {
      EXPECT_NE(errorOf({flag, value}, {"SBX_TOKEN=t"}).find(flag), std::string::npos) << value;
    }
  }
  const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_NE(errorOf({"--listen-fd", number(file)}).find("token"), std::string::npos);
}

TEST(Config, CommandsGetTheEnvironmentWithoutWhatConfiguresTheHost) {
  EXPECT_EQ(commandEnvironment({"PATH=/bin", "SBX_TOKEN=t", "SBX_PORT=1", "CAY_STATE=/s", "A=b"}),
            (std::vector<std::string>{"PATH=/bin", "A=b"}));
}

}  // namespace
}  // namespace cay::host
