// Kernel constants that Debian 12's headers do not have yet, by the version that brought them.
// Whether the running kernel knows them is found out by trying.
#pragma once

#include <cstdint>

namespace cay::sys {

// Linux 6.9: pidfd_send_signal to the group that the process leads.
inline constexpr unsigned kPidfdSignalProcessGroup = 1U << 2;

// Landlock. The argument of landlock_create_ruleset; a kernel takes a longer one than its own as
// long as what it does not know is 0.
struct LandlockRulesetAttr {
  uint64_t handledAccessFs = 0;
  uint64_t handledAccessNet = 0;  // Linux 6.7, ABI 4
  uint64_t scoped = 0;            // Linux 6.12, ABI 6
};
inline constexpr uint64_t kLandlockFsTruncate = 1U << 14;        // Linux 6.2, ABI 3
inline constexpr uint64_t kLandlockFsIoctlDev = 1U << 15;        // Linux 6.10, ABI 5
inline constexpr uint64_t kLandlockNetBindTcp = 1U << 0;         // Linux 6.7, ABI 4
inline constexpr uint64_t kLandlockScopeAbstractUnix = 1U << 0;  // Linux 6.12, ABI 6
inline constexpr uint64_t kLandlockScopeSignal = 1U << 1;        // Linux 6.12, ABI 6

// Linux 5.14; not every C library lists it.
inline constexpr uint32_t kSysQuotactlFd = 443;
// Linux 6.15: a mount call; the number is the same on all architectures, as for all calls
// since 5.1.
inline constexpr uint32_t kSysOpenTreeAttr = 467;
// Linux 6.17: file_setattr, the newest call whose meaning this program knows.
inline constexpr uint32_t kLastKnownSyscall = 469;

}  // namespace cay::sys
