#include "affinity.h"

#include <sched.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace cay::bench {
namespace {

void allow(pid_t thread, const cpu_set_t& cpus) {
  if (::sched_setaffinity(thread, sizeof cpus, &cpus) != 0) {
    throw std::runtime_error("sched_setaffinity: " + errnoText(errno));
  }
}

cpu_set_t only(int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  return cpus;
}

}  // namespace

void pinThisThread(int cpu) {
  allow(0, only(cpu));
}

void pinProcess(pid_t pid, int cpu) {
  const std::string threads = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& entry : std::filesystem::directory_iterator(threads)) {
    allow(std::stoi(entry.path().filename()), only(cpu));
  }
}

}  // namespace cay::bench
