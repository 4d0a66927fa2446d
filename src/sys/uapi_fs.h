// Kernel constants about files that Debian 12's headers may not have, by the version that brought
// them. Whether the running kernel knows them is found out by trying.
#pragma once

#include <cstdint>

namespace cay::sys {

// Linux 5.6: how openat2 walks a path (its `resolve` field).
inline constexpr uint64_t kResolveNoSymlinks = 0x04;  // a link anywhere in the path is an error
inline constexpr uint64_t kResolveBeneath = 0x08;     // what would lead out is an error
inline constexpr uint64_t kResolveInRoot = 0x10;  // "/" and ".." stay inside the given directory

// The argument of openat2, version 0.
struct OpenHow {
  uint64_t flags = 0;
  uint64_t mode = 0;
  uint64_t resolve = 0;
};

}  // namespace cay::sys
