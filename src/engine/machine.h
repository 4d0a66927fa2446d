// What there is to share out: processors, memory and GPUs of this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cay::engine {

struct Machine {
  uint32_t cpus = 1;
  uint64_t memoryBytes = 0;
  // One for each GPU, by the driver's words: "NVIDIA H200".
  std::vector<std::string> gpus;
};

// Where a driver tells of its GPUs; without that folder there are none.
inline constexpr const char* kNvidiaFolder = "/proc/driver/nvidia/gpus";
Machine thisMachine(const char* nvidiaFolder = kNvidiaFolder);

}  // namespace cay::engine
