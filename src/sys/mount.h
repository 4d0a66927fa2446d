// Mounts, by the calls that take descriptors where there is a choice. No policy.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

// What a mount does not allow, by the names of mount_setattr(2).
struct MountFlags {
  bool readOnly = false;
  bool noSuid = false;
  bool noDevices = false;
  bool noExec = false;
};

// A private copy of the tree at `path`, attached nowhere; with an empty path, of what `dir` stands
// for.
enum class Submounts { kLeaveOut, kInclude };
Result<Fd> cloneMount(int dir, const char* path, Submounts submounts = Submounts::kLeaveOut);
// Changes a detached mount: what it forbids and, if `userNamespace` is valid, whose ids its files
// are shown with.
Result<> setMount(const Fd& mount, const MountFlags& flags, int userNamespace = -1);
Result<> attachMount(const Fd& mount, const char* at);
// To what a descriptor (O_PATH will do) stands for.
Result<> attachMount(const Fd& mount, const Fd& at);
// Moves what is mounted at one path to another.
Result<> moveMount(const char* from, const char* to);

using MountOption = std::pair<const char*, std::string>;
// A new file system, detached. Options without a value have an empty one; none may have more than
// kMaxOption bytes.
inline constexpr size_t kMaxOption = 255;
Result<Fd> newMount(const char* type, std::span<const MountOption> options,
                    const MountFlags& flags);

// The same, attached. Options may be longer than newMount() takes, as those that list the layers of
// an overlay.
Result<> mountAt(const char* at, const char* type, std::span<const MountOption> options,
                 const MountFlags& flags);
inline Result<> mountAt(const char* at, const char* type,
                        std::initializer_list<MountOption> options, const MountFlags& flags) {
  return mountAt(at, type, std::span(options.begin(), options.size()), flags);
}

// Takes the mount at `path` away with everything below it, even if it is in use.
Result<> detachMount(const char* path);
// Nothing that is mounted here from now on is seen in other namespaces, nor theirs here.
Result<> makeMountsPrivate();
Result<> pivotRoot(const char* newRoot, const char* oldRoot);

}  // namespace cay::sys
