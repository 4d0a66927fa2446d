#include "layers/spare_folders.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "base/ids.h"
#include "layers/folder_reset.h"
#include "sys/file.h"
#include "sys/remove_tree.h"

namespace cay::layers {
namespace {

Result<Fd> openFolder(int dir, const char* name) {
  return sys::openAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<> build(const Shape& shape, int dir, const char* name) {
  CAY_TRY(makePart(dir, {.path = name, .mode = shape.mode}));
  CAY_ASSIGN(const Fd folder, openFolder(dir, name));
  for (const Part& part : shape.parts) CAY_TRY(makePart(folder.get(), part));
  return {};
}

Result<> give(const Shape& shape, int dir, const char* name, uid_t owner) {
  if (owner == ::geteuid()) return {};
  for (const Part& part : shape.parts) {
    if (part.owner != Part::Owner::kSandbox) continue;
    const std::string path = std::string(name) + "/" + part.path;
    CAY_TRY(sys::chownLinkAt(dir, path.c_str(), owner, owner));
  }
  return {};
}

Result<> reset(const Shape& shape, int dir, const char* name) {
  CAY_ASSIGN(const Fd folder, openFolder(dir, name));
  return resetFolder(shape, folder.get());
}

// Asks ext4 to put the folders that are made here, with all that is in them, far from each other.
// Without a journal it searches past every inode freed in the last minutes when it makes a new one,
// so where sandboxes come and go it must not be in the same corner. Other file systems say no.
void spread(int folder) {
  constexpr int kTopOfHierarchy = 0x00020000;  // FS_TOPDIR_FL of <linux/fs.h>
  int flags = 0;
  if (::ioctl(folder, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= kTopOfHierarchy;
  (void)::ioctl(folder, FS_IOC_SETFLAGS, &flags);
}

}  // namespace

void addTops(Shape& shape, size_t overlays) {
  shape.parts.push_back({.path = "tops"});
  for (size_t i = 0; i < overlays; ++i) {
    const std::string top = "tops/" + std::to_string(i);
    shape.parts.push_back({.path = top});
    shape.parts.push_back({.path = top + "/work"});
    shape.parts.push_back({.path = top + "/upper", .mode = 0755, .owner = Part::Owner::kSandbox});
  }
}

SpareFolders::SpareFolders(Fd folder) : folder_(std::move(folder)) {
  spread(folder_.get());
  const auto left = sys::readDirectory(folder_.get());
  if (!left) return;
  for (const sys::DirEntry& entry : *left) {
    (void)sys::removeTree(folder_.get(), entry.name.c_str());
  }
}

Result<> SpareFolders::take(const Shape& shape, int dir, const char* name, uid_t owner) {
  std::string spare;
  {
    const std::scoped_lock lock(mutex_);
    Kept& kept = kept_.try_emplace(shape.name, shape, std::vector<std::string>()).first->second;
    if (!kept.names.empty()) {
      spare = std::move(kept.names.back());
      kept.names.pop_back();
    }
  }
  if (spare.empty()) {
    CAY_TRY(build(shape, dir, name));
  } else {
    CAY_TRY(sys::renameAt(folder_.get(), spare.c_str(), dir, name));
  }
  return give(shape, dir, name, owner);
}

Result<> SpareFolders::giveBack(const Shape& shape, int dir, const char* name) {
  const auto isWanted = [&] {
    const std::scoped_lock lock(mutex_);
    const auto kept = kept_.find(shape.name);
    return kept != kept_.end() && kept->second.names.size() < kKept;
  };
  if (!isWanted() || !reset(shape, dir, name)) return sys::removeTree(dir, name);
  std::string spare = newId("spare");
  CAY_TRY(sys::renameAt(dir, name, folder_.get(), spare.c_str()));
  const std::scoped_lock lock(mutex_);
  kept_.at(shape.name).names.push_back(std::move(spare));
  return {};
}

void SpareFolders::refill() {
  std::unique_lock lock(mutex_);
  for (auto& [name, kept] : kept_) {
    while (kept.names.size() < kFew) {
      lock.unlock();
      std::string spare = newId("spare");
      const auto built = build(kept.shape, folder_.get(), spare.c_str());
      if (!built) {
        (void)sys::removeTree(folder_.get(), spare.c_str());
        return;
      }
      lock.lock();
      kept.names.push_back(std::move(spare));
    }
  }
}

}  // namespace cay::layers
