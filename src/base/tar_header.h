// Making tar headers, with pax records for what the old fields cannot hold. Pure.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>

namespace cay {

// Appends the header of a file, directory or link. `name` is relative, and a directory's ends in
// '/'.
void appendTarHeader(std::string& out, std::string_view name, std::string_view linkTarget,
                     const struct stat& stat);

// Appends the mark of the archive's end.
void appendTarEnd(std::string& out);

}  // namespace cay
