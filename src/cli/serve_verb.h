// `cay serve`: the arguments of the hub.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments.h"
#include "hub/options.h"

namespace cay::cli {

// Adds the options of the verb; what they say goes into `options`, but for --state.
void addServeOptions(CLI::App& verb, hub::ServeOptions& options);

// What no single option can tell. kInvalid, with the option to change, if they contradict each
// other. Completes `listen`.
Result<> completeServeOptions(hub::ServeOptions& options);

// Beside the running program, else in `path` as of PATH. kNotFound if it is nowhere.
Result<std::string> findCayHost(const std::string& program, const std::string& path);

void addServeVerb(CLI::App& cay, Action& action, int& exitCode);

}  // namespace cay::cli
