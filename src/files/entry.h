// What stat and list tell about a file. Blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "files/place.h"

namespace cay::files {

struct Entry {
  std::string name;  // bytes; "/" for the root
  std::string_view type;
  uint64_t size = 0;
  int64_t mtimeMs = 0;
  mode_t mode = 0;  // permission bits
};

// "file", "dir", "symlink", "fifo", "socket" or "device".
std::string_view typeName(mode_t mode);

// kConflict that says what the thing at `path` is, if it is no regular file.
Result<> requireRegular(const sys::Stat& stat, std::string_view path);

struct StatResult {
  std::string path;  // absolute bytes
  Entry entry;
};
// Of a link itself. Its size, though, is that of the regular file it leads to, if it leads to one:
// clients ask for the size and then read through the link exactly that many bytes.
Result<StatResult> stat(const Place& place, std::string_view path);

struct ListOptions {
  std::optional<std::string> after;  // only names behind this one
  std::optional<uint64_t> limit;     // at most so many
};
struct Listing {
  std::string path;            // of the directory, absolute bytes
  std::vector<Entry> entries;  // in the order of their bytes
  bool more = false;           // the limit has cut it
};
// `after` may be in the form of path_text.h. What vanishes meanwhile is left out.
Result<Listing> list(const Place& place, std::string_view path, const ListOptions& options);

}  // namespace cay::files
