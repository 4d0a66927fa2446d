// cay-host from its configuration to its exit code.
#pragma once

#include <string>
#include <vector>

#include "host/config.h"

namespace cay::host {

// Serves until told to stop (SIGTERM, SIGINT), idle for long enough, or what it serves is over.
// `environment` is what commands get.
int serve(const Config& config, std::vector<std::string> environment);

}  // namespace cay::host
