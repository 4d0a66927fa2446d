// Waiting in tests for what another thread or process does in its own time.
#pragma once

#include <functional>
#include <thread>

#include "base/clock.h"

namespace cay::testing {

// False if it does not come true within twenty seconds.
inline bool eventually(const std::function<bool()>& condition) {
  constexpr int64_t kPatienceMs = 20'000;
  constexpr Millis kStep{2};
  for (const int64_t until = monotonicMs() + kPatienceMs; monotonicMs() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(kStep);
  }
  return false;
}

}  // namespace cay::testing
