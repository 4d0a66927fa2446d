// inotify: the kernel's reports about changes below watched directories.
#pragma once

#include <sys/inotify.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

// Non-blocking.
Result<Fd> inotifyCreate();
// Watches the file that `target` (a descriptor, O_PATH is enough) refers to; needs /proc. The same
// file watched twice gives the same number.
Result<int> inotifyAdd(int inotify, int target, uint32_t mask);
// Ignores a watch that is gone already.
void inotifyRemove(int inotify, int watch);

struct InotifyEvent {
  int watch = -1;
  uint32_t mask = 0;
  uint32_t cookie = 0;
  std::string name;
};
// What is queued now, in order; at most one buffer full. Empty when there is nothing.
Result<std::vector<InotifyEvent>> inotifyRead(int inotify);

}  // namespace cay::sys
