// The network of a sandbox that has its own, new or given.
#pragma once

#include "base/error.h"
#include "base/fd.h"

namespace cay::isolation {

// Brings the loopback of the calling process's network namespace up, with every port free to bind.
Result<> openLoopback();
// Moves the calling process to a network namespace; kConflict if it is the one that it is in, which
// others use.
Result<> enterNetwork(const Fd& network);

}  // namespace cay::isolation
