// What cay-host is told on its command line and in its environment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "host/startup.h"
#include "isolation/plan.h"
#include "sandbox/output_log.h"

namespace cay::host {

enum class TreeKill { kAuto, kSubreaper };

struct Config {
  uint16_t port = 49983;
  std::vector<std::string> listen;  // IP addresses; empty: chosen by whether there is a token
  std::string token;                // empty: loopback only, no authentication
  int64_t idleTimeoutMs = 0;        // 0: never
  std::string state;
  size_t maxConnections = 512;
  sandbox::LogShape logShape;
  uint64_t logBytesTotal = 512ULL << 20;
  TreeKill treeKill = TreeKill::kAuto;
  std::string logLevel = "info";

  // Host mode: many sandboxes instead of one.
  bool hostMode = false;
  size_t capacity = 64;                  // sandboxes at a time
  bool compatHostToken = false;          // the host's token opens sandboxes too
  size_t mostReady = 16;                 // of which so many may be made before they are asked for
  std::string images;                    // a folder of local roots; empty: there are none
  std::optional<isolation::Mode> walls;  // the strongest that can be had, if not set

  // What another program that starts us says besides (startup.h).
  std::optional<AttachedSandbox> attached;
  std::optional<PoolSettings> pool;
  int64_t lifetimeMs = 0;  // 0: for ever
  std::string endNote;     // a file; empty: none
  int listenFd = -1;
  int readyFd = -1;

  enum class Action { kServe, kHelp, kVersion } action = Action::kServe;
};

// Reads flags (which win) and environment. The error is one line that names the bad value.
Result<Config> parseConfig(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment);

std::string_view helpText();

// The environment that commands get: ours without what configures the host.
std::vector<std::string> commandEnvironment(const std::vector<std::string>& environment);

bool isLoopbackAddress(std::string_view address);

}  // namespace cay::host
