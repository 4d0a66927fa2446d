// Which GPU each job has. How many are free is the queue's to know; here they have names. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "engine/machine.h"

namespace cay::engine {

// GPUs go by the minor numbers of their device nodes.
class Gpus {
 public:
  explicit Gpus(const std::vector<Gpu>& all);

  // The lowest ones that are free; nullopt if there are not so many.
  std::optional<std::vector<uint32_t>> take(uint32_t count);
  // Exactly these, which a job has already. False if one is not free or not here any more.
  bool claim(const std::vector<uint32_t>& minors);
  void release(const std::vector<uint32_t>& minors);

 private:
  std::set<uint32_t> all_;
  std::set<uint32_t> free_;
};

}  // namespace cay::engine
