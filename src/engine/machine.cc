#include "engine/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
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

// "Model:  NVIDIA H200" and "Device Minor:  0" of a GPU's information file. Without a number there
// is no way to it.
std::optional<Gpu> gpuOf(const std::filesystem::path& folder) {
  constexpr std::string_view kModel = "Model:";
  constexpr std::string_view kMinor = "Device Minor:";
  const auto text = sys::readFile((folder / "information").c_str());
  if (!text) return std::nullopt;
  Gpu gpu{.model = "GPU"};
  std::optional<uint64_t> minor;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with(kModel)) gpu.model = trim(line.substr(kModel.size()));
    if (line.starts_with(kMinor)) minor = parseUint(trim(line.substr(kMinor.size())));
  }
  if (!minor) return std::nullopt;
  gpu.minor = static_cast<uint32_t>(*minor);
  return gpu;
}

}  // namespace

Machine thisMachine(const char* nvidiaFolder) {
  Machine machine;
  machine.cpus = cpuCount();
  machine.memoryBytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::error_code none;
  for (const auto& folder : std::filesystem::directory_iterator(nvidiaFolder, none)) {
    if (auto gpu = gpuOf(folder.path())) machine.gpus.push_back(*std::move(gpu));
  }
  std::ranges::sort(machine.gpus, {}, &Gpu::minor);
  return machine;
}

}  // namespace cay::engine
