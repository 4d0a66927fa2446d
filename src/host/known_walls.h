// What an earlier cay-host has found out about the walls, for those that are started beside it or
// after it: trying them all takes the better part of a second.
//
// It counts for what was tried: this boot of the machine, this program, this mode, these control
// groups. And for an hour, since those who run the machine can change it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "host/wall_table.h"
#include "isolation/plan.h"
#include "isolation/probe.h"

namespace cay::host {

class KnownWalls {
 public:
  // `file`: an absolute path; empty: nothing is remembered.
  KnownWalls(std::string file, isolation::Mode mode, const isolation::Facts& facts);

  // nullopt: nobody has tried, not like this, or too long ago. `nowMs`: monotonicMs().
  [[nodiscard]] std::optional<WallTable> recall(int64_t nowMs) const;
  // Only a table of walls that all stand: others are tried again.
  Result<> remember(const WallTable& found, int64_t nowMs) const;

 private:
  std::string file_;
  json::Object tried_;
};

}  // namespace cay::host
