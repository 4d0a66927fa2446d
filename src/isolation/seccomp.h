// The filter on the system calls of commands: what no build or test needs, and what the kernel's
// worst holes were found in, fails as if the caller lacked the privilege (EPERM). The list is in
// seccomp.cc and in docs/security.md.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace cay::isolation {

struct FilterOptions {
  // System V and POSIX message queues, semaphores and shared memory: to be denied where the sandbox
  // has no ipc namespace, since they are the whole machine's and outlive their maker.
  bool denyIpc = false;
  // The first process of the sandbox, its keeper, is of the commands' own user, so that only the
  // filter keeps them from signalling it, or from changing its rank and limits.
  bool shieldFirstProcess = false;
};

struct Filter {
  std::vector<sock_filter> code;
  // For install(); valid as long as the filter is neither changed nor moved.
  [[nodiscard]] sock_fprog view() const {
    return {static_cast<unsigned short>(code.size()), const_cast<sock_filter*>(code.data())};
  }
};

Filter makeFilter(const FilterOptions& options);

// For good, for the calling thread and all that it starts. It must have no_new_privs set or
// CAP_SYS_ADMIN. 0, or -1 with errno; neither allocates nor locks, so it may stand between clone
// and exec.
int install(const sock_fprog& program);

}  // namespace cay::isolation
