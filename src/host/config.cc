#include "host/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "sys/io.h"

namespace cay::host {
namespace {

constexpr std::string_view kHelp = R"(cay-host: serves one sandbox over HTTP

usage: cay-host [options]

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

Commands run on the file system that cay-host finds itself in, as the user that it runs as.
CAY_TREE_KILL=subreaper holds the processes of a command together without control groups.
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

bool isHeaderSafe(std::string_view token) {
  return std::ranges::all_of(token, [](char c) { return c > 0x20 && c < 0x7F; });
}

bool isAddress(std::string_view text) {
  in6_addr parsed{};
  const std::string address(text);
  return ::inet_pton(AF_INET, address.c_str(), &parsed) == 1 ||
         ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

using Setter = std::function<Result<>(Config&, std::string_view name, std::string_view value)>;

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

const std::map<std::string_view, Setter>& flagSetters() {
  static const std::map<std::string_view, Setter> setters = {
      {"--port", setPort},
      {"--idle-timeout", setIdle},
      {"--max-connections", setConnections},
      {"--listen",
       [](Config& config, std::string_view name, std::string_view value) -> Result<> {
         if (!isAddress(value)) return bad(name, value, "an IP address");
         config.listen.emplace_back(value);
         return {};
       }},
      {"--token-file",
       [](Config& config, std::string_view, std::string_view value) -> Result<> {
         CAY_ASSIGN(config.token, readToken(value));
         return {};
       }},
      {"--state",
       [](Config& config, std::string_view name, std::string_view value) -> Result<> {
         if (value.empty()) return bad(name, value, "a folder");
         config.state = value;
         return {};
       }},
      {"--log-bytes-per-exec",
       [](Config& config, std::string_view name, std::string_view value) -> Result<> {
         CAY_ASSIGN(const uint64_t bytes, numberIn(name, value, 8192, 1ULL << 40));
         config.logShape = {.headBytes = bytes / 2, .ringBytes = bytes - bytes / 2};
         return {};
       }},
      {"--log-bytes-total",
       [](Config& config, std::string_view name, std::string_view value) -> Result<> {
         CAY_ASSIGN(config.logBytesTotal, numberIn(name, value, 0, 1ULL << 50));
         return {};
       }},
      {"--log-level",
       [](Config& config, std::string_view name, std::string_view value) -> Result<> {
         if (value != "debug" && value != "info" && value != "warn" && value != "error") {
           return bad(name, value, "debug, info, warn or error");
         }
         config.logLevel = value;
         return {};
       }},
  };
  return setters;
}

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
  const std::map<std::string_view, Setter> setters = {
      {"SBX_PORT", setPort},
      {"SBX_IDLE_TIMEOUT", setIdle},
      {"SBX_MAX_CONNECTIONS", setConnections},
  };
  for (const auto& [name, set] : setters) {
    const auto value = variable(environment, name);
    if (value && !value->empty()) CAY_TRY(set(config, name, *value));
  }
  if (const auto token = variable(environment, "SBX_TOKEN")) config.token = *token;
  if (const auto state = variable(environment, "CAY_STATE")) config.state = *state;
  if (const auto mode = variable(environment, "SBX_HOST_MODE");
      mode && !mode->empty() && *mode != "0") {
    return fail(Code::kInvalid,
                "SBX_HOST_MODE: this version serves one sandbox for each host only");
  }
  if (const auto kill = variable(environment, "CAY_TREE_KILL")) {
    if (*kill != "auto" && *kill != "subreaper")
      return bad("CAY_TREE_KILL", *kill, "auto or subreaper");
    config.treeKill = *kill == "subreaper" ? TreeKill::kSubreaper : TreeKill::kAuto;
  }
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
    const auto setter = flagSetters().find(name);
    if (setter == flagSetters().end()) {
      return fail(Code::kInvalid, "unknown option " + quoted(name) + " (see --help)");
    }
    if (!value) {
      if (i + 1 >= arguments.size())
        return fail(Code::kInvalid, std::string(name) + ": a value is missing");
      value = arguments[++i];
    }
    CAY_TRY(setter->second(config, name, *value));
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
