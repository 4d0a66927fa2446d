// The network of a sandbox that has its own.
#pragma once

#include "base/error.h"

namespace cay::isolation {

// Brings the loopback of the calling process's network namespace up, with every port free to bind.
Result<> openLoopback();

}  // namespace cay::isolation
