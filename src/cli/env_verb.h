// `cay env`: what a client needs in its environment.
#pragma once

#include "cli/arguments.h"

namespace cay::cli {

void addEnvVerb(CLI::App& cay, Action& action);

}  // namespace cay::cli
