// Copying an entry from one directory into another: regular files, directories and links, with
// their modes, owners (where we may give them) and times. FIFOs, sockets and devices are kConflict.
// Links are copied, not followed. Blocking.
#pragma once

#include <string>

#include "base/error.h"

namespace cay::files {

// `to` must not exist. `shownPath` is the source's path for errors. On failure a partial copy is
// left behind.
Result<> copyTree(int fromDir, const std::string& from, int toDir, const std::string& to,
                  const std::string& shownPath);

}  // namespace cay::files
