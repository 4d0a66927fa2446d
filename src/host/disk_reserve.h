// What is kept free of the file system that holds the sandboxes, since a full one would hurt them
// all: new sandboxes and uploads are refused before it comes to that.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace cay::host {

class DiskReserve {
 public:
  // `folder` is a descriptor that stays open.
  explicit DiskReserve(int folder) : folder_(folder) {}

  // kExhausted if less than the reserve is free. Looks at most a few times a second.
  Result<> check(int64_t nowMs);

  // 2 % of a file system of that size, but at least 256 MiB (or a quarter of a tiny one) and at
  // most 4 GiB.
  static uint64_t bytesFor(uint64_t totalBytes);

 private:
  int folder_;
  int64_t lookedAtMs_ = INT64_MIN;
  bool low_ = false;
};

}  // namespace cay::host
