// A small file that nobody sees half-written.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace cay::sys {

// Written under another name first, with ".new" at its end. Mode 0600.
Result<> replaceFileAt(int dir, const std::string& path, std::string_view text);

}  // namespace cay::sys
