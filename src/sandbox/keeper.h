// The keeper: the process that runs a sandbox's commands. It holds their pipes, writes their output
// and exit records into the state folder, and outlives the host that started it, so that the host
// can be killed and started again without losing a byte. One thread, one epoll loop, small on
// purpose: the kernel counts a command's peak memory from its parent's.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/enclosure.h"
#include "sandbox/output_log.h"

namespace cay::sandbox {

struct KeeperOptions {
  Fd listener;   // seqpacket, bound in the state folder
  Fd logFolder;  // where output logs go
  LogShape shape;
  std::string cgroupName;                   // of the folder for its groups
  std::string noCgroups;                    // why none are to be used; empty: try
  uint64_t commandOpenFiles = 1024;         // the soft limit of commands; ours may be higher
  int64_t lifetimeMs = 0;                   // after which it ends everything; 0: never
  bool stays = false;                       // it does not leave for want of work or of a host
  std::optional<isolation::Inside> inside;  // the walls that stand around it; none: it has none
};

// All at their defaults, whatever this process was started with, since commands inherit them; and
// blocked. For runKeeper, which does it itself where nobody else has.
void blockSignals();

// Serves until it is told to shut down, until its life is over, or until it has been without a host
// and without anything running for a while. Returns the process's exit code.
int runKeeper(KeeperOptions options);

}  // namespace cay::sandbox
