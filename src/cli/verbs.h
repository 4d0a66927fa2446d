// The program `cay`: finds the verb and does what it says.
#pragma once

#include <string>
#include <vector>

namespace cay::cli {

// `arguments` without the program's name. Gives the exit code:
//   0 done, 1 failed, 2 bad arguments, 3 not there, 4 denied, 5 unreachable, 6 in use
int runCay(std::vector<std::string> arguments);

}  // namespace cay::cli
