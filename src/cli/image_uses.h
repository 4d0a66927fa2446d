// Which images the jobs of a hub are made of, whether or not it runs: jobs outlive it.
#pragma once

#include <set>
#include <string>

#include "base/error.h"
#include "hub/paths.h"

namespace cay::cli {

// Their digests. An error if that cannot be known of one of them. Blocking.
Result<std::set<std::string>> imagesOfJobs(const hub::Paths& paths);

}  // namespace cay::cli
