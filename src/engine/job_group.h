// The control groups around all that a job runs, where no keeper of the job stands over it: a
// server of many sandboxes, which makes groups of its own below.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/fd.h"
#include "isolation/limit_groups.h"

namespace cay::engine {

class JobGroup {
 public:
  // `name` is what the groups were found by.
  JobGroup(const isolation::LimitGroups& groups, std::string name, uint32_t slot)
      : groups_(groups), name_(std::move(name)), slot_(slot) {}

  // There are such groups here, and they hold all that is in them together.
  [[nodiscard]] bool holds() const { return groups_.hasPids() && groups_.hasMemory(); }
  // Whoever writes "0" into each of these is in, with all it will ever start. kExhausted where
  // there are no groups.
  [[nodiscard]] Result<std::vector<Fd>> entrances(const isolation::Limits& limits) const;

  // Kills all that is in, until nothing is, and removes what it made below. kTimeout if somebody is
  // still there after `patience`: what hangs in the kernel dies whenever that lets go. Blocking.
  [[nodiscard]] Result<> end(Millis patience) const;

 private:
  // False if there was nobody.
  [[nodiscard]] bool killAllIn(const std::string& folder) const;

  const isolation::LimitGroups& groups_;
  std::string name_;
  uint32_t slot_;
};

}  // namespace cay::engine
