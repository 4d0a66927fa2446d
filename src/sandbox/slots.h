// Numbers for sandboxes: each has one, from which its user ids and the names of its limit groups
// follow. A number is given out again only when nothing of its last owner is left.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

namespace cay::sandbox {

class Slots {
 public:
  explicit Slots(uint32_t limit) : limit_(limit) {}

  // The lowest free one; nullopt if all are taken.
  std::optional<uint32_t> take();
  // One that has an owner from before a restart. False if it is taken or not ours to give.
  bool claim(uint32_t slot);
  void release(uint32_t slot);

 private:
  const uint32_t limit_;
  uint32_t next_ = 0;        // from here on all are free
  std::set<uint32_t> free_;  // below next_
};

}  // namespace cay::sandbox
