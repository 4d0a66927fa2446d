// Keeps slow disks from stopping the loop: tells whether a part of a file is in memory, and reads
// it in.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fd.h"

namespace cay::net {

// Never blocks. True also where the file system cannot tell.
bool isCached(int file, uint64_t offset, size_t length);

// A descriptor of its own for readIn on another thread; invalid, so that nothing is read in, when
// there are no more to be had.
Fd duplicate(int file);

// Blocks until the part is in memory or cannot be read.
void readIn(int file, uint64_t offset, size_t length);

}  // namespace cay::net
