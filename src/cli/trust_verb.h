// `cay trust`: the hub's CA in the store of the system, for those who want that.
#pragma once

#include "cli/arguments.h"

namespace cay::cli {

void addTrustVerb(CLI::App& cay, Action& action);

}  // namespace cay::cli
