// What must not be possible in a sandbox, each act tried from inside as an attacker would. All of
// them are harmless where they succeed, as far as the act allows.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "isolation/bait.h"

namespace cay::isolation {

enum class Outcome : uint8_t {
  kDenied,
  kAllowed,
  kNone,  // could not be tried here
};

struct Tried {
  Outcome outcome = Outcome::kNone;
  std::string detail;
};

// What it says of a wall when the act succeeds.
enum class Weight : uint8_t { kWeakens, kBreaks };

struct Act {
  const char* wall;
  const char* name;  // in the words of "tried to ..."
  Weight weight;
  Tried (*attempt)(const Bait& bait);
};

// In the order in which they are to be tried: those that may end the process come last.
std::span<const Act> acts();

}  // namespace cay::isolation
