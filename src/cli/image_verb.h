// `cay image`: what jobs can be made of. Works whether or not a hub runs; the hub runs it too, so
// that nothing of a registry is read in its own process.
#pragma once

#include "cli/arguments.h"

namespace cay::cli {

void addImageVerb(CLI::App& cay, Action& action);

}  // namespace cay::cli
