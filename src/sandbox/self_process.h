// Starting this same program again under another name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace cay::sandbox {

// Runs /proc/self/exe with these arguments, the first of which names it, in a session of its own
// and with an empty environment. It gets `descriptors` from 3 on, and /dev/null below.
Result<> startSelf(const std::vector<std::string>& arguments, std::span<const int> descriptors);

}  // namespace cay::sandbox
