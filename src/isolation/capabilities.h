// Capabilities of commands: what uid 0 of a sandbox may do over its own files and processes. They
// count in the sandbox's user namespace only; those that open large parts of the kernel even there
// (SYS_ADMIN, NET_ADMIN, SYS_PTRACE, SYS_MODULE, MKNOD, ...) are never kept.
//
// Both functions neither allocate nor lock, so they may stand between clone and exec, and answer 0,
// or -1 with errno.
#pragma once

#include <linux/capability.h>

#include <cstdint>

namespace cay::isolation {

using CapabilitySet = uint64_t;  // bit n: the capability of number n

constexpr CapabilitySet capability(unsigned number) {
  return CapabilitySet{1} << number;
}

inline constexpr CapabilitySet kNoCapabilities = 0;
// What package managers, useradd and servers that change their user need.
inline constexpr CapabilitySet kCommandCapabilities =
    capability(CAP_CHOWN) | capability(CAP_DAC_OVERRIDE) | capability(CAP_FOWNER) |
    capability(CAP_FSETID) | capability(CAP_KILL) | capability(CAP_SETGID) |
    capability(CAP_SETUID) | capability(CAP_SETPCAP) | capability(CAP_NET_BIND_SERVICE) |
    capability(CAP_SYS_CHROOT) | capability(CAP_AUDIT_WRITE) | capability(CAP_SETFCAP);

// Takes all others out of the bounding set, so that no program started later can get them. Needs
// CAP_SETPCAP unless they are out already. Entering a user namespace fills the bounding set again.
int limitBoundingSet(CapabilitySet kept);

// The same, and of the process itself: `kept` becomes its permitted and effective set; the
// inheritable and ambient ones become empty. Fails if the process does not have all of `kept`. The
// bounding set may stay as it is where it cannot be changed and no_new_privs makes it meaningless.
int dropTo(CapabilitySet kept);

}  // namespace cay::isolation
