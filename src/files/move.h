// Moving a file, a link or a directory. Blocking.
//
// Within a file system this is rename(2): atomic, an existing file is replaced, an empty directory
// too by a directory. The parent of `to` must exist. Across file systems the source is copied
// beside `to` (contents, modes, owners, times, links as links), then takes its name, and only then
// the source is removed.
#pragma once

#include <string_view>

#include "base/error.h"
#include "files/place.h"

namespace cay::files {

// kInvalid for the root, the home, what leads to the home, and for a directory into itself.
Result<> move(const Place& place, std::string_view from, std::string_view to);

}  // namespace cay::files
