// Making and removing directories. Blocking.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "files/place.h"

namespace cay::files {

// Makes the directory and all that lead to it. One that exists already is fine (also behind a
// link); a file in the way is kConflict.
Result<> makeDirectory(const Place& place, std::string_view path);

// The same for a path from Place::absolute, by a thread that is already acting as the place's
// identity.
Result<> makeDirectories(const Place& place, const std::string& absolute);

enum class Recursive { kNo, kYes };

// Removes a file, a link itself, an empty directory or, with kYes, a directory and everything below
// it. The root, the home and what leads to the home are refused (kInvalid). Links met on the way
// are removed, never followed. Stops at the first thing that cannot be removed.
Result<> remove(const Place& place, std::string_view path, Recursive recursive);

// Removes the entry, with what is below it, by a thread that is already acting. `shownPath` is for
// errors.
Result<> removeTree(int dir, const std::string& name, const std::string& shownPath);

}  // namespace cay::files
