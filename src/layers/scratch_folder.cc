#include "layers/scratch_folder.h"

#include <cerrno>

#include "base/ids.h"
#include "sys/file.h"
#include "sys/remove_tree.h"

namespace cay::layers {
namespace {

constexpr char kNew[] = "/new";

Result<Fd> openFolder(int dir, const char* name) {
  return sys::openAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<Fd> parentIn(const std::string& in) {
  const std::string path = in + kNew;
  const auto made = sys::makeDirectoryAt(AT_FDCWD, path.c_str(), 0700);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  return openFolder(AT_FDCWD, path.c_str());
}

}  // namespace

Result<ScratchFolder> ScratchFolder::make(const std::string& in) {
  for (;;) {
    ScratchFolder made;
    CAY_ASSIGN(made.parent_, parentIn(in));
    made.name_ = newId("new");
    made.path_ = in + kNew + "/" + made.name_;
    CAY_TRY(sys::makeDirectoryAt(made.parent_.get(), made.name(), 0700));
    auto folder = openFolder(made.parent_.get(), made.name());
    if (!folder && folder.error().sys == ENOENT) continue;  // swept before it had its lock
    if (!folder) return std::unexpected(std::move(folder).error());
    made.folder_ = *std::move(folder);
    CAY_ASSIGN(const bool locked, sys::tryLockFd(made.folder(), sys::Lock::kExclusive));
    if (locked) return made;
  }
}

ScratchFolder::~ScratchFolder() {
  if (parent_.valid()) (void)sys::removeTree(parent_.get(), name_.c_str());
}

void ScratchFolder::sweep(const std::string& in) {
  const auto parent = parentIn(in);
  const auto entries = parent ? sys::readDirectory(parent->get()) : std::unexpected(parent.error());
  if (!entries) return;
  for (const sys::DirEntry& entry : *entries) {
    const auto folder = openFolder(parent->get(), entry.name.c_str());
    if (folder && !sys::tryLockFd(folder->get(), sys::Lock::kExclusive).value_or(false)) continue;
    (void)sys::removeTree(parent->get(), entry.name.c_str());
  }
}

Result<> ScratchFolder::discard(const std::string& in, int dir, const char* name) {
  CAY_ASSIGN(const Fd parent, parentIn(in));
  const std::string leaving = newId("old");
  CAY_TRY(sys::renameAt(dir, name, parent.get(), leaving.c_str()));
  return sys::removeTree(parent.get(), leaving.c_str());
}

}  // namespace cay::layers
