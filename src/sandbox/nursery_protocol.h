// What the nursery tells its host, once, before it takes plans (plan_wire.h), each with a listener
// riding along.
#pragma once

#include <cstdint>

namespace cay::sandbox {

inline constexpr int kNurserySocket = 3;

enum class NurseryMessage : uint8_t {
  kReady,
  kFailed,  // text: why this mode cannot be had here; it exits
};

}  // namespace cay::sandbox
