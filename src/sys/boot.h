// Which boot of the machine this is.
#pragma once

#include <string>

#include "base/error.h"

namespace cay::sys {

// Times and process numbers of one boot mean nothing in another.
Result<std::string> bootId();

}  // namespace cay::sys
