// Disk images: a sandbox whose disk is limited has its writable files in a file system of its own,
// inside a file of that size which takes only the space that is used.
//
// For every size in use there is a template, formatted once; a disk is a copy of it.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/error.h"
#include "base/fd.h"

namespace cay::layers {

class DiskImages {
 public:
  static constexpr uint64_t kMinBytes = uint64_t{16} << 20;

  // `folder` is for the templates: disks/ of the state folder.
  explicit DiskImages(Fd folder) : folder_(std::move(folder)) {}

  // Makes the new disk `name` in a directory of the same file system. `bytes` is rounded down to
  // whole MiB; kInvalid if that is less than the minimum. Some 0.2 ms, but 10 ms for the first of a
  // size. Blocking; safe from every thread.
  Result<> make(int folder, const char* name, uint64_t bytes);

  // Tries the whole way, from formatting to mounting. The error says why disks cannot be limited
  // here.
  Result<> tryOut();

 private:
  Result<Fd> openTemplate(uint64_t bytes);
  Result<Fd> formatTemplate(const char* name, uint64_t bytes);
  void forgetOldTemplates();

  const Fd folder_;
  std::mutex mutex_;
};

}  // namespace cay::layers
