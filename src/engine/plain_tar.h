// An archive as it is before compression: by a confined gzip or zstd where there is need of one.
#pragma once

#include <optional>

#include "base/error.h"
#include "base/fd.h"
#include "engine/tool_process.h"

namespace cay::engine {

class PlainTar {
 public:
  // `file` must be one on disk, positioned at its start. What it is, is found by its first bytes.
  static Result<PlainTar> open(Fd file);

  // To be read to its end.
  [[nodiscard]] int fd() const { return bytes_.get(); }
  // All has been read: was that really all?
  Result<> finish();

 private:
  PlainTar(Fd bytes, std::optional<ToolProcess> tool)
      : bytes_(std::move(bytes)), tool_(std::move(tool)) {}

  Fd bytes_;
  std::optional<ToolProcess> tool_;
};

}  // namespace cay::engine
