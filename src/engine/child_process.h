// Starting another program of ours without copying this one's memory, and waiting for its end.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "net/task.h"
#include "sys/process.h"

namespace cay::engine {

struct ChildSpec {
  std::string program;                   // absolute
  std::vector<std::string> arguments;    // after the program's own name
  std::vector<std::string> environment;  // whole
  std::vector<int> descriptors;          // it gets them from 0 on; -1: /dev/null
  int users = -1;                        // a user namespace to be in
  int network = -1;                      // a network namespace to be in
  std::vector<int> groups;               // control groups to be in, by their files of processes
  bool endsWithUs = false;               // is killed when the calling thread ends
};

// In a session of its own. Everything of the specification is done before the program runs, or it
// does not run.
Result<sys::Born> startChild(const ChildSpec& spec);

// Completes when the process has ended; 0 if it was not a child of ours, else its status as of
// waitpid. The descriptor is of a process.
net::Task<int> childEnded(Fd pidfd);

}  // namespace cay::engine
