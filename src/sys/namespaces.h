// Namespaces and the processes that live in new ones.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

// clone3 in the manner of fork, with CLONE_NEW* flags: 0 in the child, which has a copy of the
// caller's memory. For single-threaded processes alone.
Result<pid_t> forkInto(uint64_t namespaces);

// A user namespace in which `count` ids starting at 0 are the ids of our own namespace that start
// at `first`. The caller must be privileged over those.
Result<Fd> newUserNamespace(const char* procFolder, uint32_t first, uint32_t count);

// Moves the calling process to a new user namespace over its parent's one, in which it has these
// ids, no others, and all capabilities. For single-threaded, dumpable processes alone.
Result<> enterNewUserNamespace(uid_t uid, gid_t gid);

// The user namespace that owns a namespace, if it is one below the caller's own; not valid if it is
// that itself.
Result<Fd> ownerBelow(const Fd& space);

// unshare(2). For single-threaded processes alone.
Result<> unshare(int namespaces);
// setns(2) with a descriptor of a namespace, which must be of that kind (CLONE_NEW*; 0: any).
Result<> enter(const Fd& space, int kind = 0);

}  // namespace cay::sys
