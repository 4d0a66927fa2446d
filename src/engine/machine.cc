#include "engine/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

// Those that this process may use, which can be fewer than the machine has.
uint32_t cpuCount() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) {
    return static_cast<uint32_t>(std::max(1, CPU_COUNT(&set)));
  }
  return static_cast<uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
}

// "Model:  NVIDIA H200" of a GPU's information file.
std::string modelOf(const std::filesystem::path& gpu) {
  constexpr std::string_view kField = "Model:";
  const auto text = sys::readFile((gpu / "information").c_str());
  if (text) {
    for (const std::string_view line : split(*text, '\n')) {
      if (line.starts_with(kField)) return std::string(trim(line.substr(kField.size())));
    }
  }
  return "GPU";
}

}  // namespace

Machine thisMachine(const char* nvidiaFolder) {
  Machine machine;
  machine.cpus = cpuCount();
  machine.memoryBytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::error_code none;
  for (const auto& gpu : std::filesystem::directory_iterator(nvidiaFolder, none)) {
    machine.gpus.push_back(modelOf(gpu.path()));
  }
  return machine;
}

}  // namespace cay::engine
