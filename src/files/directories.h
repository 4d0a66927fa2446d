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
// are removed, never followed. Goes on past what cannot be removed; the error names it.
Result<> remove(const Place& place, std::string_view path, Recursive recursive);

}  // namespace cay::files
