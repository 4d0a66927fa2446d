// Names between disk and JSON. On disk a name is bytes; JSON can hold only Unicode.
//
// Rule: a path that is valid UTF-8 is shown as it is. Any other is shown with each byte that
// belongs to no character, and each '%', written as %XX. So a client can put the shown text into a
// URL unchanged; and when it comes back through a library that escapes the '%' once more,
// Place::absolute recognises it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cay::files {

std::string shown(std::string_view bytes);

// The path as an absolute one without "//", ".", ".." or a slash at the end: as text, ".." takes
// away the name before it, and nothing at the top.
std::string clamped(std::string_view path);

// The bytes that are not valid UTF-8 and that shown() turns into `text`; nullopt if there are none.
std::optional<std::string> unshown(std::string_view text);

}  // namespace cay::files
