// Places in a sandbox's new root that something is to be mounted on.
//
// The image below is hostile: paths are walked one name at a time by descriptors, and a link in the
// way is never followed, whoever exchanges what for what meanwhile.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

// While it lives, what the calling process makes belongs to the sandbox's root, as it must on
// mounts that have the sandbox's ids. Nobody else is to run meanwhile.
class AsSandboxRoot {
 public:
  explicit AsSandboxRoot(const Plan& plan);
  ~AsSandboxRoot();
  AsSandboxRoot(const AsSandboxRoot&) = delete;
  AsSandboxRoot& operator=(const AsSandboxRoot&) = delete;

 private:
  int bitsBefore_ = -1;  // < 0: nothing was changed
};

// kInvalid unless it is absolute and plain: no "//", ".", ".." nor '/' at its end.
Result<> checkPlainPath(const std::string& path);

enum class PointKind : uint8_t {
  kFolder,
  kFile,
  kFileForLink,  // a file; if there is a link in its place, the link goes
};
// Opens the place (O_PATH), a plain path below the root, and makes what is missing of it.
Result<Fd> mountPointAt(const Fd& root, const std::string& path, PointKind kind);

}  // namespace cay::isolation
