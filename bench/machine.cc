#include "machine.h"

#include <filesystem>
#include <stdexcept>

#include "base/text.h"
#include "sys/io.h"

namespace cay::bench {
namespace {

constexpr double kKilobyte = 1024;

double rollup(pid_t pid, std::string_view name) {
  return numberIn("/proc/" + std::to_string(pid) + "/smaps_rollup", name) * kKilobyte;
}

double memory(std::string_view name) {
  return numberIn("/proc/meminfo", name) * kKilobyte;
}

}  // namespace

double numberIn(const std::string& path, std::string_view name) {
  const std::string text = "\n" + sys::readFile(path.c_str()).value_or("");
  const size_t at = text.find("\n" + std::string(name));
  if (at == std::string::npos) {
    throw std::runtime_error("there is no " + std::string(name) + " in " + path);
  }
  return std::stod(text.substr(at + 1 + name.size()));
}

double residentBytes(pid_t pid) {
  return rollup(pid, "Rss:");
}

double proportionalBytes(pid_t pid) {
  return rollup(pid, "Pss:");
}

double availableBytes() {
  return memory("MemAvailable:");
}

double occupiedBytes() {
  double sum = 0;
  for (const char* part :
       {"AnonPages:", "Shmem:", "SUnreclaim:", "KernelStack:", "PageTables:", "Percpu:"}) {
    sum += memory(part);
  }
  return sum;
}

std::vector<pid_t> allProcesses() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (const auto pid = parseUint(entry.path().filename().string())) {
      found.push_back(static_cast<pid_t>(*pid));
    }
  }
  return found;
}

std::vector<pid_t> processesOf(const std::string& program) {
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    std::error_code gone;
    const auto running =
        std::filesystem::read_symlink("/proc/" + std::to_string(pid) + "/exe", gone);
    if (!gone && running == program) found.push_back(pid);
  }
  return found;
}

}  // namespace cay::bench
