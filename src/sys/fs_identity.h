// Who the calling thread is for the file system. Only that thread changes: Linux keeps these
// credentials per thread, and the raw system calls used here, unlike glibc's, do not pass them on
// to the others.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "base/error.h"

namespace cay::sys {

struct Identity {
  uid_t uid;
  gid_t gid;
  // Also for what looks at the effective ids and at capabilities, such as the files below
  // /proc/sys. While it lasts, processes of that user that see the thread may set its priority and
  // processors.
  bool effective = false;
  bool operator==(const Identity&) const = default;
};

// For its lifetime the thread creates and opens files as `identity`, without supplementary groups
// and, if the uid is not 0, without the capabilities that override permissions (with `effective`:
// without any). Ends on the thread it began on.
class ActingAs {
 public:
  // Nothing changes for nullopt. Fails, changing nothing, if the process may not take that
  // identity.
  static Result<ActingAs> begin(std::optional<Identity> identity);
  ActingAs(ActingAs&& other) noexcept;
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;
  ActingAs& operator=(ActingAs&&) = delete;
  ~ActingAs();

 private:
  ActingAs() = default;
  std::optional<Identity> before_;  // set if there is something to restore
  std::vector<gid_t> groups_;
};

}  // namespace cay::sys
