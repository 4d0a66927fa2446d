// What the nursery tells its host, once, before it takes plans (plan_wire.h), each with descriptors
// riding along.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cay::sandbox {

inline constexpr int kNurserySocket = 3;
inline constexpr int kNurseryUsers = 4;  // a user namespace, if it is given one
// Which of a plan's descriptors is what.
inline constexpr size_t kListener = 0;
inline constexpr size_t kNetwork = 1;  // with Network::kGiven

enum class NurseryMessage : uint8_t {
  kReady,
  kFailed,  // text: why this mode cannot be had here; it exits
};

}  // namespace cay::sandbox
