// Waiting for descriptors that are no sockets of ours: pipes, and those of processes.
#pragma once

#include "base/fd.h"
#include "net/task.h"

namespace cay::net {

// Gives a descriptor back once there is something to read from it; of a process (pidfd), once that
// has ended. A mere wake-up of Asio's proves nothing: it may have been meant for a descriptor that
// was closed in the same turn of the loop, and whose place this one has taken.
Task<Fd> readable(Fd descriptor);

}  // namespace cay::net
