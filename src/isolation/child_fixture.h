// Walls cannot be taken down again, so each test raises them in a process of its own.
#pragma once

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace cay::isolation {

inline constexpr int kKilledBy = 256;  // plus the signal

// What `body` returns (0 to 255), or kKilledBy + signal. It has no_new_privs set.
inline int inChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::_exit(body());
  }
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? kKilledBy + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace cay::isolation
