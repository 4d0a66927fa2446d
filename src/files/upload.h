// Upload: bytes on their way into a file. One thread at a time; every call blocks.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace cay::files {

class Upload {
 public:
  virtual ~Upload() = default;
  // Takes the next piece.
  virtual Result<> write(std::string_view piece) = 0;
  // All pieces are there: makes the result visible. Without it the upload was given up.
  virtual Result<> commit() = 0;
};

}  // namespace cay::files
