// Starting one command: everything between the decision to run it and its first instruction.
#pragma once

#include <sys/resource.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "isolation/enclosure.h"
#include "sandbox/exec.h"
#include "sys/process.h"

namespace cay::sandbox {

struct LaunchPlan {
  const ExecSpec& spec;
  int stdio[3];         // become descriptors 0, 1 and 2; each must be 3 or higher
  int intoCgroup = -1;  // cgroup v2 directory, or -1
  rlimit openFiles;     // the limit that commands get, whatever ours is
  const isolation::Inside* inside = nullptr;  // the walls to enter; null: none
  // Called with `herald` by the new process, before it closes what is not the command's and becomes
  // it. Shares our memory: may neither allocate nor lock.
  void (*beforeExec)(int herald) = nullptr;
  int herald = -1;
};

// Why a command did not start, by whose fault.
enum class StartFault : uint8_t {
  kCommand,   // it cannot be run: not found (127), not executable or too long (126)
  kRequest,   // the request names something impossible, e.g. a missing working directory
  kShortage,  // the machine has no processes, memory or descriptors left
};

struct StartFailure {
  StartFault fault = StartFault::kCommand;
  int exitCode = 0;  // with kCommand
  std::string message;
};

using Launched = std::expected<sys::Born, StartFailure>;

// Leads a session of its own, with every signal at its default and unblocked. Blocks until the
// command's exec has succeeded or failed. All signals must be blocked in the caller.
Launched launch(const LaunchPlan& plan);

}  // namespace cay::sandbox
