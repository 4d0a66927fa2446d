// The /dev of a sandbox: the few nodes that all have, and those of the host that its plan names.
// Nobody inside can add to it, and a node anywhere else is dead.
#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

// Mounts a new folder with what every sandbox has at `at`, which exists. Who may not make nodes
// borrows them from the folder `from`.
Result<> makeDevices(Mode mode, const std::string& at, const std::string& from);

// A copy of the mount of one node, attached nowhere. Of the calling process's mount namespace; a
// link anywhere in the path is an error, and so is all that is not a character device.
Result<Fd> takeDevice(const std::string& path);

// Shows `taken`, one for each device of the plan, in a folder of makeDevices() that nobody else
// has.
Result<> addDevices(const Plan& plan, std::span<const Fd> taken, const std::string& at);

}  // namespace cay::isolation
