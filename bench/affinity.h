// Which core something runs on.
#pragma once

#include <sys/types.h>

namespace cay::bench {

// Throw std::runtime_error where the kernel refuses.
void pinThisThread(int cpu);
// All threads that the process has now; those it makes later inherit it.
void pinProcess(pid_t pid, int cpu);

}  // namespace cay::bench
