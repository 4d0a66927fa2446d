// Tells a kill for lack of memory from any other: the kernel counts such kills for each memory
// group.
#pragma once

#include <cstdint>

#include "base/fd.h"

namespace cay::sandbox {

class OomCounter {
 public:
  // Opens the counter of the memory group that this process is in: cgroup v2 memory.events, or v1
  // memory.oom_control. Where there is none, read() is always 0.
  static OomCounter forOwnGroup();

  [[nodiscard]] uint64_t read() const;

 private:
  Fd file_;
};

}  // namespace cay::sandbox
