// Which user ids of the machine the sandboxes of this hub have, so that no two hubs share any.
//
// A folder with a file for each block of ids, which holds the state folder that the block belongs
// to. It stays with that folder as long as there is one that says the same and has sandboxes: what
// it left running has those ids. While a hub runs, it holds a lock on its file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/user_ids.h"

namespace cay::engine {

class IdLease {
 public:
  // kExhausted if all blocks are taken. `state` is absolute.
  static Result<IdLease> take(const std::string& folder, const std::string& state);

  // Those of jobs.
  [[nodiscard]] sandbox::UserIds jobs() const;

  // Those of a pool are so many units.
  static constexpr uint32_t kUnitSlots = 64;
  static constexpr uint32_t kUnits = 32;
  // The ids of units that follow each other.
  [[nodiscard]] sandbox::UserIds pool(uint32_t firstUnit, uint32_t units) const;
  [[nodiscard]] uint32_t number() const { return number_; }

 private:
  IdLease(uint32_t number, Fd file) : number_(number), file_(std::move(file)) {}

  uint32_t number_;
  Fd file_;
};

// Which units of a lease the pools have. A sandbox that is being removed still has its ids, and so
// has one that stands ready, so a pool gets more than it may hold.
class IdUnits {
 public:
  static uint32_t unitsFor(uint32_t capacity);
  // The first of so many in a row; nullopt if there is no such row.
  std::optional<uint32_t> take(uint32_t units);
  // False if one of them is taken, or there are not so many.
  bool claim(uint32_t first, uint32_t units);
  void release(uint32_t first, uint32_t units);

 private:
  std::vector<bool> taken_ = std::vector<bool>(IdLease::kUnits, false);
};

}  // namespace cay::engine
