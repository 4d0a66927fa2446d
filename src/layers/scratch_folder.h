// A folder for what is not finished yet, gone with its last owner.
//
// It lies in new/ of the folder that is given, and is locked for as long as its process lives, so
// that whoever comes across one without a lock may remove it. Blocking.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace cay::layers {

class ScratchFolder {
 public:
  static Result<ScratchFolder> make(const std::string& in);
  ScratchFolder(ScratchFolder&&) = default;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder();

  [[nodiscard]] int folder() const { return folder_.get(); }
  // Where it is: a name in a directory, and the whole path.
  [[nodiscard]] int parent() const { return parent_.get(); }
  [[nodiscard]] const char* name() const { return name_.c_str(); }
  [[nodiscard]] std::string path() const { return path_; }

  // Removes those of processes that were killed.
  static void sweep(const std::string& in);
  // Moves an entry of `dir` to a name of no process, for it to be removed there.
  static Result<> discard(const std::string& in, int dir, const char* name);

 private:
  ScratchFolder() = default;

  Fd parent_;
  Fd folder_;
  std::string name_;
  std::string path_;
};

}  // namespace cay::layers
