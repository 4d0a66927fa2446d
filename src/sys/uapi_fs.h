// Kernel interfaces to files that Debian 12's headers (the kernel's, glibc's or musl's) may not
// have, by the version that brought them. Whether the running kernel knows them is found out by
// trying.
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

// Linux 4.14: preadv2 fails with EAGAIN where it would have to wait for the disk.
inline constexpr int kReadNoWait = 0x8;

// Linux 4.11: what statx fills in, as far as it is read here.
inline constexpr uint32_t kStatxBirth = 0x800;
// Linux 5.8: in the attributes, that a mount begins here.
inline constexpr uint64_t kStatxMountRoot = 0x2000;
struct Statx {
  uint32_t mask = 0;
  uint32_t blockSize = 0;
  uint64_t attributes = 0;
  uint64_t before[8] = {};
  int64_t birthSeconds = 0;
  uint32_t birthNanoseconds = 0;
  uint32_t padding = 0;
  uint64_t after[20] = {};
};
static_assert(sizeof(Statx) == 256);

}  // namespace cay::sys
