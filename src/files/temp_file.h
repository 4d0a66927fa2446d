// A file that does not show until it is complete, and leaves nothing behind if it never is.
//
// It has no name where the file system allows that (O_TMPFILE), so that even SIGKILL leaves
// nothing; else a hidden, unique name that the destructor removes. Blocking; used by one thread at
// a time.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace cay::files {

class TempFile {
 public:
  // In `dir`, which must outlive it. `mode` is subject to the umask.
  static Result<TempFile> create(int dir, mode_t mode);
  TempFile(TempFile&& other) noexcept;
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();

  // Open for reading and writing.
  [[nodiscard]] int fd() const { return fd_.get(); }

  // Gives it its name, atomically in place of a file that has that name now. Where the file system
  // has hard links, a new name appears by itself, and only an existing one is replaced by a rename
  // from a hidden one.
  Result<> publish(const std::string& name);

 private:
  TempFile(int dir, Fd fd, std::string name)
      : dir_(dir), fd_(std::move(fd)), name_(std::move(name)) {}
  Result<> link(const std::string& name);

  int dir_;
  Fd fd_;
  std::string name_;  // empty while it has none
};

// True for the hidden names that these files have meanwhile.
bool isTempName(std::string_view name);

}  // namespace cay::files
