// What sandboxes could leave behind on a machine, counted.
#pragma once

#include <map>
#include <string>

#include "pool_host.h"

namespace cay::bench {

using Traces = std::map<std::string, double>;

// Of the machine as a whole, whoever made it: mounts, mount namespaces that processes are in, loop
// devices in use, control groups that are removed but not gone, and the kernel's own count of
// mounts and namespaces.
Traces tracesOnMachine();

// Of a host and its nursery and keepers: processes, control groups by its name, disk, and spare
// folders with the size of the largest; while it runs, also its descriptors, threads and memory.
Traces tracesOf(const PoolHost& host);

}  // namespace cay::bench
