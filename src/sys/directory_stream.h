// The entries of a directory one after the other, however many there are. Blocking.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/error.h"

namespace cay::sys {

class DirectoryStream {
 public:
  struct Entry {
    const char* name;    // valid until the next call
    unsigned char type;  // DT_DIR, …; DT_UNKNOWN where the file system does not say
  };

  // `dir` must be open for reading, stays the caller's and is read from where it stands.
  explicit DirectoryStream(int dir);

  // Everything but "." and "..", in no order; nullopt at the end. Entries may be removed meanwhile.
  Result<std::optional<Entry>> next();
  // Back to the start.
  Result<> rewind();

 private:
  int dir_;
  std::unique_ptr<std::byte[]> buffer_;
  size_t at_ = 0;
  size_t end_ = 0;
};

}  // namespace cay::sys
