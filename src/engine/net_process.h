// cay-net: the small process with one thread that makes the networks of a hub's jobs and holds
// them. It outlives the hub, and waits for the next one: only its own end takes the networks away.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "engine/router.h"

namespace cay::engine {

// Starts it, this same program under another name, with a socket that listens already.
Result<> startNetProcess(const Router::Settings& settings, const Fd& listener);

// The settings in this process's arguments; nullopt if it is not to be cay-net.
std::optional<Router::Settings> netArguments(const std::vector<std::string>& arguments);
// Serves until it is told to go, by a hub or by SIGTERM, or until neither hub nor job has been
// there for a day. Gives its exit code.
int runNetProcess(const Router::Settings& settings);

}  // namespace cay::engine
