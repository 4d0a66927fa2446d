// What a job with GPUs needs of the machine: their device nodes, and of NVIDIA's driver what must
// be of the very version of its part in the kernel, which no image can know: libraries and
// nvidia-smi. Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "isolation/plan.h"

namespace cay::engine {

// Where they are inside. Not below /usr, which cannot be changed in every mode.
inline constexpr char kDriverLibraries[] = "/run/nvidia/lib64";
inline constexpr char kDriverPrograms[] = "/run/nvidia/bin";

struct GpuPlaces {
  std::string proc = "/proc/driver/nvidia";
  std::string dev = "/dev";
  std::string root = {};  // below which libraries and programs are searched; empty: the machine's
};

struct GpuFiles {
  std::vector<std::string> devices;    // see isolation::Plan
  std::vector<isolation::Bind> binds;  // all of them files, and read-only
};

// Of the GPUs with these minor numbers. kNotFound, with what to do, if something is not there that
// no program could do without.
Result<GpuFiles> gpuFiles(const GpuPlaces& places, const std::vector<uint32_t>& minors);

}  // namespace cay::engine
