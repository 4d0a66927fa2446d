// Which user ids of the machine the sandboxes of a host have.
#pragma once

#include <cstdint>
#include <string_view>

#include "isolation/plan.h"

namespace cay::sandbox {

struct UserIds {
  uint32_t base = 0;   // the first of slot 0
  uint32_t step = 0;   // from slot to slot; 0: all have the same, which is our own
  uint32_t count = 1;  // of each slot
  uint32_t slots = 0;  // how many there can be

  // The same for the life of a state folder, whose name it is. Hosts in restricted mode that share
  // a machine get different ids where there are enough.
  static UserIds choose(isolation::Mode mode, std::string_view stateName);

  // What uid 0 of the slot's sandbox is outside, or what its commands are.
  [[nodiscard]] uint32_t first(uint32_t slot) const { return base + slot * step; }
  [[nodiscard]] bool isOwn() const { return step == 0; }
  bool operator==(const UserIds&) const = default;
};

}  // namespace cay::sandbox
