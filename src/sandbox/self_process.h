// Starting this same program again under another name, or one that is to play such a part.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace cay::sandbox {

// Runs the program of this path with these arguments, the first of which names it, in a session of
// its own and with an empty environment. It gets `descriptors` from 3 on, and /dev/null below.
Result<> startProgram(const std::string& path, const std::vector<std::string>& arguments,
                      std::span<const int> descriptors);
inline Result<> startSelf(const std::vector<std::string>& arguments,
                          std::span<const int> descriptors) {
  return startProgram("/proc/self/exe", arguments, descriptors);
}

}  // namespace cay::sandbox
