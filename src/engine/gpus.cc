#include "engine/gpus.h"

#include <algorithm>

namespace cay::engine {

Gpus::Gpus(const std::vector<Gpu>& all) {
  for (const Gpu& gpu : all) all_.insert(gpu.minor);
  free_ = all_;
}

std::optional<std::vector<uint32_t>> Gpus::take(uint32_t count) {
  if (count > free_.size()) return std::nullopt;
  std::vector<uint32_t> out;
  for (; count > 0; --count) out.push_back(free_.extract(free_.begin()).value());
  return out;
}

bool Gpus::claim(const std::vector<uint32_t>& minors) {
  const bool allFree =
      std::ranges::all_of(minors, [&](uint32_t minor) { return free_.contains(minor); });
  if (allFree) {
    for (const uint32_t minor : minors) free_.erase(minor);
  }
  return allFree;
}

void Gpus::release(const std::vector<uint32_t>& minors) {
  for (const uint32_t minor : minors) {
    if (all_.contains(minor)) free_.insert(minor);
  }
}

}  // namespace cay::engine
