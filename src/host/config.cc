#include "host/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "sandbox/pool_record.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::host {
namespace {

constexpr std::string_view kHelp = R"(cay-host: serves one sandbox, or many, over HTTP

usage: cay-host [options]
       cay-host doctor [--help]   what this machine's walls are worth

  --port N                port to listen on; 0 takes any free one (SBX_PORT, default 49983)
  --listen ADDRESS        IP address to listen on, may be repeated (default: all addresses with a
                          token, 127.0.0.1 and ::1 without)
  --token-file FILE       file that holds the token clients must send (else SBX_TOKEN)
  --idle-timeout TIME     exit after so long without requests and processes: 90, 90s, 10m, 1.5h;
                          0 is never (SBX_IDLE_TIMEOUT, default never)
  --state DIR             where output, records and the keeper's socket live (CAY_STATE)
  --max-connections N     more are answered 503 (SBX_MAX_CONNECTIONS, default 512)
  --log-bytes-per-exec N  how much output of a command is kept whole (default 16777216)
  --log-bytes-total N     how much output of ended commands is kept in all (default 536870912)
  --log-level LEVEL       debug, info, warn or error (default info)
  --help                  this text
  --version               the version

Without --host-mode commands run on the file system that cay-host finds itself in, as the user that
it runs as. CAY_TREE_KILL=subreaper holds the processes of a command together without control groups.

  --host-mode             serve many sandboxes, each behind walls of its own; needs a token
                          (SBX_HOST_MODE=1)
  --capacity N            how many at a time (SBX_CAPACITY, default 64)
  --ready N               how many more, with walls up, may wait for the next creates while many are
                          being used (CAY_READY, default 16; 0: none)
  --images DIR            folder of root file systems that sandboxes can be made of, one in each entry
                          (CAY_IMAGES)
  --walls WALLS           full, unprivileged or restricted (CAY_WALLS, default auto: the strongest
                          that can be had here)
  --compat-host-token     sandboxes also take the host's token, for clients that know no other
                          (SBX_COMPAT_HOST_TOKEN=1)

For a program that starts cay-host, with descriptors that it has inherited:

  --config-fd N           a JSON document with token and settings, or with the sandbox to serve
  --listen-fd N           a socket that listens already, instead of --port and --listen
  --ready-fd N            where "ready" is written once requests are answered
)";

std::unexpected<Error> bad(std::string_view name, std::string_view value,
                           std::string_view expected) {
  return fail(Code::kInvalid,
              std::string(name) + ": " + quoted(value) + " is not " + std::string(expected));
}

Result<uint64_t> numberIn(std::string_view name, std::string_view value, uint64_t low,
                          uint64_t high) {
  const auto number = parseUint(value);
  if (!number || *number < low || *number > high) {
    return bad(name, value, "a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *number;
}

Result<std::string> readToken(std::string_view path) {
  auto text = sys::readFile(std::string(path).c_str(), 64 * 1024);
  if (!text) return fail(Code::kInvalid, "--token-file: cannot read " + text.error().message);
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return fail(Code::kInvalid, "--token-file: " + quoted(path) + " is empty");
  return *text;
}

bool isAddress(std::string_view text) {
  in6_addr parsed{};
  const std::string address(text);
  return ::inet_pton(AF_INET, address.c_str(), &parsed) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

Result<> setPort(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(const uint64_t port, numberIn(name, value, 0, 65535));
  config.port = static_cast<uint16_t>(port);
  return {};
}

Result<> setIdle(Config& config, std::string_view name, std::string_view value) {
  const auto time = parseDurationMs(value);
  if (!time) return bad(name, value, "a time such as 90, 90s, 10m or 1.5h");
  config.idleTimeoutMs = *time;
  return {};
}

Result<> setConnections(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.maxConnections, numberIn(name, value, 1, 1'000'000));
  return {};
}

Result<bool> switchIn(std::string_view name, std::string_view value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return bad(name, value, "0 or 1");
}

Result<> setHostMode(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.hostMode, switchIn(name, value));
  return {};
}

Result<> setCompatHostToken(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.compatHostToken, switchIn(name, value));
  return {};
}

Result<> setCapacity(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.capacity, numberIn(name, value, 1, kMostCapacity));
  return {};
}

Result<> setReady(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.mostReady, numberIn(name, value, 0, kMostReady));
  return {};
}

Result<> setImages(Config& config, std::string_view name, std::string_view value) {
  if (!value.starts_with('/')) return bad(name, value, "an absolute path of a folder");
  config.images = value;
  return {};
}

Result<> setWalls(Config& config, std::string_view name, std::string_view value) {
  using isolation::Mode;
  config.walls.reset();
  for (const Mode mode : {Mode::kFull, Mode::kUnprivileged, Mode::kRestricted}) {
    if (value == sandbox::modeName(mode)) config.walls = mode;
  }
  if (!config.walls && value != "auto") {
    return bad(name, value, "full, unprivileged, restricted or auto");
  }
  return {};
}

Result<> setState(Config& config, std::string_view name, std::string_view value) {
  if (value.empty()) return bad(name, value, "a folder");
  config.state = value;
  return {};
}

Result<> setTreeKill(Config& config, std::string_view name, std::string_view value) {
  if (value != "auto" && value != "subreaper") return bad(name, value, "auto or subreaper");
  config.treeKill = value == "subreaper" ? TreeKill::kSubreaper : TreeKill::kAuto;
  return {};
}

Result<> addListen(Config& config, std::string_view name, std::string_view value) {
  if (!isAddress(value)) return bad(name, value, "an IP address");
  config.listen.emplace_back(value);
  return {};
}

Result<> setTokenFile(Config& config, std::string_view, std::string_view value) {
  CAY_ASSIGN(config.token, readToken(value));
  return {};
}

Result<> setLogBytesPerExec(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(const uint64_t bytes, numberIn(name, value, 8192, 1ULL << 40));
  config.logShape = {.headBytes = bytes / 2, .ringBytes = bytes - bytes / 2};
  return {};
}

Result<> setLogBytesTotal(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.logBytesTotal, numberIn(name, value, 0, 1ULL << 50));
  return {};
}

Result<> setLogLevelName(Config& config, std::string_view name, std::string_view value) {
  if (value != "debug" && value != "info" && value != "warn" && value != "error") {
    return bad(name, value, "debug, info, warn or error");
  }
  config.logLevel = value;
  return {};
}

Result<int> descriptorIn(std::string_view name, std::string_view value) {
  CAY_ASSIGN(const uint64_t number, numberIn(name, value, 3, 1'000'000));
  const int fd = static_cast<int>(number);
  if (::fcntl(fd, F_GETFD) < 0) return bad(name, value, "an open descriptor");
  return fd;
}

Result<> setListenFd(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.listenFd, descriptorIn(name, value));
  return {};
}

Result<> setReadyFd(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(config.readyFd, descriptorIn(name, value));
  return {};
}

Result<> setStartup(Config& config, std::string_view name, std::string_view value) {
  CAY_ASSIGN(const int fd, descriptorIn(name, value));
  const Fd file(fd);
  // By its name below /proc, so that it does not matter how far it was read or written.
  auto text = sys::readFile(sys::fdPath(file.get()).c_str(), kMostStartupBytes + 1);
  auto read = text ? parseStartup(*text) : std::unexpected(text.error());
  if (text) ::explicit_bzero(text->data(), text->size());
  if (!read) return std::unexpected(std::move(read).error().wrap(name));
  config.token = std::move(read->token);
  config.compatHostToken = read->compatHostToken;
  config.idleTimeoutMs = read->idleTimeoutMs;
  config.lifetimeMs = read->lifetimeMs;
  config.endNote = std::move(read->endNote);
  config.attached = std::move(read->attached);
  config.pool = std::move(read->pool);
  config.hostMode = config.pool.has_value();
  if (!config.pool) return {};
  config.capacity = config.pool->capacity;
  config.mostReady = config.pool->mostReady;
  config.walls = config.pool->mode;
  config.state = std::move(read->stateFolder);
  return {};
}

// A setting, with its flag and its variable where it has them.
struct Setting {
  std::string_view flag;
  std::string_view variable;
  Result<> (*set)(Config& config, std::string_view name, std::string_view value);
  bool isSwitch = false;  // the flag needs no value
};

constexpr Setting kSettings[] = {
    {.flag = "--port", .variable = "SBX_PORT", .set = setPort},
    {.flag = "--idle-timeout", .variable = "SBX_IDLE_TIMEOUT", .set = setIdle},
    {.flag = "--max-connections", .variable = "SBX_MAX_CONNECTIONS", .set = setConnections},
    {.flag = "--listen", .variable = "", .set = addListen},
    {.flag = "--token-file", .variable = "", .set = setTokenFile},
    {.flag = "--state", .variable = "CAY_STATE", .set = setState},
    {.flag = "--log-bytes-per-exec", .variable = "", .set = setLogBytesPerExec},
    {.flag = "--log-bytes-total", .variable = "", .set = setLogBytesTotal},
    {.flag = "--log-level", .variable = "", .set = setLogLevelName},
    {.flag = "--config-fd", .variable = "", .set = setStartup},
    {.flag = "--listen-fd", .variable = "", .set = setListenFd},
    {.flag = "--ready-fd", .variable = "", .set = setReadyFd},
    {.flag = "", .variable = "CAY_TREE_KILL", .set = setTreeKill},
    {.flag = "--host-mode", .variable = "SBX_HOST_MODE", .set = setHostMode, .isSwitch = true},
    {.flag = "--capacity", .variable = "SBX_CAPACITY", .set = setCapacity},
    {.flag = "--ready", .variable = "CAY_READY", .set = setReady},
    {.flag = "--images", .variable = "CAY_IMAGES", .set = setImages},
    {.flag = "--walls", .variable = "CAY_WALLS", .set = setWalls},
    {.flag = "--compat-host-token",
     .variable = "SBX_COMPAT_HOST_TOKEN",
     .set = setCompatHostToken,
     .isSwitch = true},
};

std::optional<std::string_view> variable(const std::vector<std::string>& environment,
                                         std::string_view name) {
  for (const std::string& entry : environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return std::nullopt;
}

Result<> applyEnvironment(Config& config, const std::vector<std::string>& environment) {
  for (const Setting& setting : kSettings) {
    if (setting.variable.empty()) continue;
    const auto value = variable(environment, setting.variable);
    if (value && !value->empty()) CAY_TRY(setting.set(config, setting.variable, *value));
  }
  if (const auto token = variable(environment, "SBX_TOKEN")) config.token = *token;
  return {};
}

std::string defaultState(const Config& config, const std::vector<std::string>& environment) {
  const std::string own = "/cay-host-" + std::to_string(config.port);
  if (::geteuid() == 0) return "/var/lib/cay" + own;
  if (const auto state = variable(environment, "XDG_STATE_HOME"); state && !state->empty()) {
    return std::string(*state) + "/cay" + own;
  }
  if (const auto home = variable(environment, "HOME"); home && !home->empty()) {
    return std::string(*home) + "/.local/state/cay" + own;
  }
  return "/tmp/cay-" + std::to_string(::geteuid()) + own;
}

Result<> checkWhole(Config& config) {
  if (!isHeaderSafe(config.token)) {
    return fail(Code::kInvalid, "the token holds characters that cannot be sent in a header");
  }
  if (config.hostMode && config.token.empty()) {
    return fail(Code::kInvalid, "host mode needs a token: SBX_TOKEN or --token-file");
  }
  if (config.token.empty() && config.listenFd >= 0) {
    return fail(Code::kInvalid, "--listen-fd: without a token nobody could be told from others");
  }
  if (config.token.empty()) {
    for (const std::string& address : config.listen) {
      if (!isLoopbackAddress(address)) {
        return fail(Code::kInvalid,
                    "--listen: without a token only loopback addresses are allowed, not " +
                        quoted(address));
      }
    }
  }
  if (config.listen.empty()) {
    config.listen = config.token.empty() ? std::vector<std::string>{"127.0.0.1", "::1"}
                                         : std::vector<std::string>{"0.0.0.0", "::"};
  }
  return {};
}

}  // namespace

std::string_view helpText() {
  return kHelp;
}

bool isLoopbackAddress(std::string_view address) {
  return address == "::1" || (address.starts_with("127.") && isAddress(address));
}

Result<Config> parseConfig(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) {
  Config config;
  CAY_TRY(applyEnvironment(config, environment));
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i];
    if (name == "--help" || name == "-h") {
      config.action = Config::Action::kHelp;
      return config;
    }
    if (name == "--version") {
      config.action = Config::Action::kVersion;
      return config;
    }
    std::optional<std::string_view> value;
    if (const size_t equals = name.find('='); equals != std::string_view::npos) {
      value = name.substr(equals + 1);
      name = name.substr(0, equals);
    }
    const Setting* setting = std::ranges::find(kSettings, name, &Setting::flag);
    if (setting == std::end(kSettings) || name.empty()) {
      return fail(Code::kInvalid, "unknown option " + quoted(name) + " (see --help)");
    }
    if (!value && setting->isSwitch) value = "1";
    if (!value) {
      if (i + 1 >= arguments.size())
        return fail(Code::kInvalid, std::string(name) + ": a value is missing");
      value = arguments[++i];
    }
    CAY_TRY(setting->set(config, name, *value));
  }
  CAY_TRY(checkWhole(config));
  if (config.state.empty()) config.state = defaultState(config, environment);
  return config;
}

std::vector<std::string> commandEnvironment(const std::vector<std::string>& environment) {
  std::vector<std::string> out;
  for (const std::string& entry : environment) {
    if (!entry.starts_with("SBX_") && !entry.starts_with("CAY_")) out.push_back(entry);
  }
  return out;
}

}  // namespace cay::host
