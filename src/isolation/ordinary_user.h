// Being nobody in particular where somebody else has made us root.
#pragma once

#include "base/error.h"

namespace cay::isolation {

// A process that is the root of a user namespace with one id becomes an ordinary user again, in a
// namespace below: with that id as it is outside, and without capabilities. Of all others nothing
// changes. For single-threaded processes alone.
Result<> becomeOrdinaryUser();

}  // namespace cay::isolation
