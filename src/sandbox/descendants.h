// The living descendants of a process, found in /proc, and signals that reach exactly the process
// found.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace cay::sandbox {

struct ProcessRef {
  pid_t pid = 0;
  uint64_t startTime = 0;  // tells a process from a later one with the same number
};

// All but zombies.
std::vector<ProcessRef> descendantsOf(pid_t ancestor);
// False if that process is gone.
bool signalProcess(const ProcessRef& process, int number);

}  // namespace cay::sandbox
