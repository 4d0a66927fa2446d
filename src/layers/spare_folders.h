// Spare folders: what every new sandbox needs on the disk, made before it is asked for, and used
// again after it is gone. On some file systems making and removing a dozen folders takes longer
// than everything else about a sandbox.
//
// Safe from every thread; all calls block.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::layers {

// A folder or an empty file in the folder of a sandbox.
struct Part {
  enum class Kind { kFolder, kFile };
  enum class Owner { kUs, kSandbox };

  std::string path;
  mode_t mode = 0700;
  Owner owner = Owner::kUs;
  Kind kind = Kind::kFolder;
};

struct Shape {
  std::string name;  // the same for equal shapes only
  mode_t mode = 0700;
  std::vector<Part> parts;  // folders before what is in them
};

// Adds tops/<n>/{upper,work} for so many overlays. Uppers have the mode that "/" and "/usr" are to
// have inside.
void addTops(Shape& shape, size_t overlays);

class SpareFolders {
 public:
  // Of each shape: so many are kept of what is given back, and so few are there before more are
  // made. Where sandboxes come and go, what goes is then enough, and none is made to be removed.
  static constexpr size_t kKept = 64;
  static constexpr size_t kFew = 16;

  // `folder` is ours alone: spares/ of the state folder. Removes what an earlier host left there.
  explicit SpareFolders(Fd folder);

  // Makes the folder `name` in `dir`, a directory of the same file system.
  Result<> take(const Shape& shape, int dir, const char* name, uid_t owner);
  // Takes away such a folder with all that has come to be in it. As a spare it is like a new one,
  // whatever the sandbox did to it.
  Result<> giveBack(const Shape& shape, int dir, const char* name);

  // Makes up for what has been taken: to be called, in the background, after that.
  void refill();

 private:
  struct Kept {
    Shape shape;
    std::vector<std::string> names;
  };

  const Fd folder_;
  std::mutex mutex_;
  std::map<std::string, Kept> kept_;  // by the name of the shape
};

}  // namespace cay::layers
