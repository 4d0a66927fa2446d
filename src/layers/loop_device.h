// Loop devices: a file as a block device.
#pragma once

#include "base/error.h"
#include "base/fd.h"

namespace cay::layers {

// A free loop device on the file, which must be open for writing. It is given back when it is
// neither open nor mounted any more. `devices` is the machine's /dev, for callers that have another
// one or none. Blocking.
Result<Fd> attachLoop(const Fd& file, const Fd& devices);
Result<Fd> attachLoop(const Fd& file);

}  // namespace cay::layers
