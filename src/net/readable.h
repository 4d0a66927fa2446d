// Waiting for descriptors that are no sockets of ours: pipes, and those of processes.
#pragma once

#include "base/fd.h"
#include "net/task.h"

namespace cay::net {

// Gives a descriptor back once there is something to read from it; of a process (pidfd), once that
// has ended. A mere wake-up proves nothing: a child that is on its way to another program still has
// copies of what we close, and the kernel then wakes whoever stands in that place by now.
Task<Fd> readable(Fd descriptor);

}  // namespace cay::net
