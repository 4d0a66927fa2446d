// What the kernel tells about processes and about the machine's memory.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace cay::bench {

// The number behind `name` at the beginning of a line of a file below /proc. Throws
// std::runtime_error where there is none.
double numberIn(const std::string& path, std::string_view name);

// Resident memory, and the part of it that counts for this process where pages are shared.
double residentBytes(pid_t pid);
double proportionalBytes(pid_t pid);

// What a program could still get without swapping.
double availableBytes();
// What processes and the kernel itself hold and cannot be taken from them: no caches.
double occupiedBytes();

// The living processes whose executable is this file.
std::vector<pid_t> processesOf(const std::string& program);

// The processes of the machine, as /proc lists them.
std::vector<pid_t> allProcesses();

}  // namespace cay::bench
