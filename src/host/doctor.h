// `cay-host doctor`: what this machine's walls are worth, found out by running into them.
#pragma once

#include <string>
#include <vector>

namespace cay::host {

// Prints a table, or JSON. 0 only if all required walls hold; 1 if not; 2 for bad arguments.
int runDoctor(const std::vector<std::string>& arguments,
              const std::vector<std::string>& environment);

}  // namespace cay::host
