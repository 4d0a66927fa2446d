// Ending all processes of a user, for sandboxes that have no pid namespace to die with.
#pragma once

#include <sys/types.h>

#include "base/error.h"

namespace cay::isolation {

// SIGKILL to every process of a uid that is given to one sandbox alone. The kernel reaches all of
// them in one go, also those just being forked.
Result<> endAllOf(uid_t uid);
// True while one of them has not ended. Looks through all processes.
bool anyLeftOf(uid_t uid);

}  // namespace cay::isolation
