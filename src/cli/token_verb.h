// `cay token`: who may use the hub. Works whether or not one runs; a running hub notices.
#pragma once

#include "cli/arguments.h"

namespace cay::cli {

void addTokenVerb(CLI::App& cay, Action& action);

}  // namespace cay::cli
