// Files and folders of the host inside a sandbox.
//
// They are seen with the sandbox's ids (full mode), read-only where that is asked for, and never
// with set-user-id programs or devices. Of a file system that cannot do that, such as an old
// squashfs, only files that all may read and nobody is to write are taken, as somebody else's.
// Sources are taken by the nursery, which sees the host's
// file system; keepers put them in their places.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

// kInvalid for a place that nothing of the host may be mounted on, and for what is no plain path.
Result<> checkBind(const Bind& bind);

// A copy of the mount of its source, attached nowhere. Of the calling process's mount namespace; a
// link anywhere in the path is an error, since others may write there.
Result<Fd> takeSource(const Bind& bind);

// Mounts them below the new root of the calling process. `sources`: one for each bind of the plan.
Result<> mountBinds(const Plan& plan, std::span<const Fd> sources, const Fd& root,
                    int userNamespace);

}  // namespace cay::isolation
