// Writing a whole file so that readers see the old content or the new one and nothing between.
//
// - The bytes go to a TempFile beside the target, which replaces it by rename at the end. An upload
// that is
//   given up leaves the old file untouched. No fsync: the promise is about other processes, not
//   power cuts.
// - Parent directories are made.
// - A link at the end of the path is followed inside the root, and the file it leads to is written;
// the link
//   stays. If it leads nowhere, that file is made.
// - An existing file keeps its permissions and its owner; setuid and setgid are dropped, as by
// write(2).
//   Extended attributes are not kept, and other hard links to it keep the old content. A new file
//   has mode 0666 less the umask.
// - What is no regular file is kConflict.
// - Where the directory cannot take a new file or the name cannot be replaced (not writable, /proc,
// /sys, a
//   file that is itself a mount point, an owner that we may not give), the file is truncated and
//   written in place, and the above holds no more.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "files/place.h"
#include "files/upload.h"

namespace cay::files {

// `mode`: permission bits to set, whether the file is new or not.
Result<std::unique_ptr<Upload>> replaceFile(std::shared_ptr<const Place> place,
                                            std::string_view path, std::optional<mode_t> mode);

// Checks that a path from a request can name a file to be written, and makes its parents. The
// thread must be acting as the place's identity.
Result<std::string> prepareTarget(const Place& place, std::string_view path);

}  // namespace cay::files
