// The two clocks. Deadlines and durations use the monotonic one, dates shown to people the wall
// clock.
#pragma once

#include <chrono>
#include <cstdint>

namespace cay {

using Millis = std::chrono::milliseconds;

inline int64_t monotonicMs() {
  return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
inline int64_t wallMs() {
  return std::chrono::duration_cast<Millis>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}
inline int64_t wallUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace cay
