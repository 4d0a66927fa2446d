// Processes: making them the cheap way, waiting for them, and signalling them without pid races.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

struct VforkOptions {
  int (*child)(void* argument) =
      nullptr;  // runs on a stack of its own and must end in exec or _exit
  void* argument = nullptr;
  int intoCgroup = -1;  // a cgroup v2 directory to be born in, or -1
};

struct Born {
  pid_t pid = -1;
  Fd pidfd;
};

// clone3 with CLONE_VM | CLONE_VFORK | CLONE_PIDFD: the caller sleeps until the child has called
// exec or exited, and shares its memory with it meanwhile. All signals must be blocked in the
// caller, since a handler would run on shared memory; the child must touch nothing but `argument`.
Result<Born> cloneVfork(const VforkOptions& options);

// A process that shares our memory and does nothing but hold new namespaces (CLONE_NEW*) until it
// is killed. It is cheaper than a fork, which copies page tables.
Result<pid_t> cloneHolder(uint64_t namespaces);

Result<Fd> pidfdOpen(pid_t pid);
// False if the process is already gone.
bool pidfdSignal(const Fd& pidfd, int signal);
// Sends `signal` to the whole process group that the process of `pidfd` leads; `leader` is its pid
// and must not have been reaped yet, so that the number cannot belong to anybody else.
bool pidfdSignalGroup(const Fd& pidfd, pid_t leader, int signal);

struct Ended {
  pid_t pid = 0;
  int status = 0;  // as of waitpid
  rusage usage{};
};

// When a process was born, in the kernel's ticks since boot: with its number that names it for
// good, in every pid namespace. kNotFound if there is none of that number.
Result<uint64_t> processStart(pid_t pid);

// A child that has ended, not yet reaped; nullopt if there is none.
std::optional<pid_t> peekEndedChild();
// Reaps that child.
std::optional<Ended> reap(pid_t pid);

// What a process has read and written so far, by system calls, with what its reaped children did.
// To be opened while the process lives: of a zombie only root may open it. Reading works until it
// is reaped; zeros where the kernel does not count.
class IoCounter {
 public:
  struct Counts {
    uint64_t readBytes = 0;
    uint64_t writtenBytes = 0;
  };

  IoCounter() = default;
  explicit IoCounter(pid_t pid);
  [[nodiscard]] Counts read() const;

 private:
  Fd file_;
};

}  // namespace cay::sys
