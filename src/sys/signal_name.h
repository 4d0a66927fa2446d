// Names of signals as people write them: INT, KILL, USR1. Not of real-time signals, which have
// none.
#pragma once

#include <string_view>

namespace cay::sys {

// Empty for a number without a name.
std::string_view signalName(int number);

// 0 for a name that is unknown.
int signalNumber(std::string_view name);

}  // namespace cay::sys
