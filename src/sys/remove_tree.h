// Removing a whole tree of files. Blocking.
#pragma once

#include "base/error.h"

namespace cay::sys {

// Removes the entry `name` of the directory `dir` with everything below it; one that is not there
// is fine. Links are removed, never followed, and nothing outside the tree is touched: no "..", no
// mount point is entered.
//
// A tree may be as deep and a directory as full as it likes: neither the stack nor memory nor the
// number of descriptors grows with it. Modes and immutable flags that are in the way are taken away
// where we may. What something else adds meanwhile is removed too, unless it goes on for ever.
//
// Goes on past what cannot be removed; the error then names some of it and says how much there is.
Result<> removeTree(int dir, const char* name);

}  // namespace cay::sys
