// What there is to share out: processors, memory and GPUs of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cay::engine {

struct Gpu {
  std::string model;   // by the driver's words: "NVIDIA H200"
  uint32_t minor = 0;  // of its device node, /dev/nvidia<minor>
  bool operator==(const Gpu&) const = default;
};

struct Machine {
  uint32_t cpus = 1;
  uint64_t memoryBytes = 0;
  std::vector<Gpu> gpus;  // by their minor numbers
};

// Where a driver tells of its GPUs; without that folder there are none.
inline constexpr const char* kNvidiaFolder = "/proc/driver/nvidia/gpus";
Machine thisMachine(const char* nvidiaFolder = kNvidiaFolder);

}  // namespace cay::engine
