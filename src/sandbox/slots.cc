#include "sandbox/slots.h"

namespace cay::sandbox {
std::optional<uint32_t> Slots::take() {
  if (!free_.empty()) return free_.extract(free_.begin()).value();
  if (next_ == limit_) return std::nullopt;
  return next_++;
}

bool Slots::claim(uint32_t slot) {
  if (slot >= limit_) return false;
  if (slot < next_) return free_.erase(slot) == 1;
  for (; next_ < slot; ++next_) free_.insert(next_);
  ++next_;
  return true;
}

void Slots::release(uint32_t slot) {
  free_.insert(slot);
  while (next_ > 0 && free_.erase(next_ - 1) == 1) --next_;
}

}  // namespace cay::sandbox
