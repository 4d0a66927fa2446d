// The bare way to run a program: posix_spawn, then waitpid. What every other way is compared with.
// Throws std::runtime_error unless the program exits with 0.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace cay::bench {

using Command = std::vector<std::string>;

void spawnAndWait(const Command& command);
// The same with the standard output read through a pipe.
std::string spawnAndRead(const Command& command);

// Starts a program whose standard output or error is `stream`; it inherits everything else.
pid_t spawn(const Command& command, const char* const* environment, int streamNumber,
            const Fd& stream);
// Waits for the end and gives the exit status; 128 + signal where a signal ended it.
int waitFor(pid_t pid);

}  // namespace cay::bench
