// Formatting: an ext4 file system inside a file, by the machine's mkfs.ext4.
#pragma once

#include "base/error.h"

namespace cay::layers {

// Formats the file, which must be empty but for its size, for one sandbox: no journal, nothing
// reserved for root, an inode for every 8 KiB, and all of it ready, so that the kernel has nothing
// left to do in the background. Takes some 10 ms and 150 KiB of disk. kExhausted where mkfs.ext4 is
// not to be found. Blocking.
Result<> makeExt4(int file);

}  // namespace cay::layers
