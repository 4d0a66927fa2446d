#include "layers/folder_reset.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/fd.h"
#include "sys/directory_stream.h"
#include "sys/file.h"
#include "sys/remove_tree.h"

namespace cay::layers {
namespace {

constexpr off_t kMostFolderBytes = 16 << 10;  // many files make a folder grow, and it never shrinks

std::string_view parentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view nameOf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool mayStay(int folder, const Part& part) {
  if (part.owner == Part::Owner::kSandbox) return false;
  const auto stat = sys::statFd(folder);
  return stat && (stat->st_mode & 07777) == part.mode && stat->st_size <= kMostFolderBytes;
}

class Reset {
 public:
  explicit Reset(const Shape& shape) : shape_(shape) {}

  // `dir` is the folder at `path` of the shape.
  Result<> reset(int dir, std::string_view path) {
    std::vector<const Part*> parts;
    for (const Part& part : shape_.parts) {
      if (parentOf(part.path) == path) parts.push_back(&part);
    }
    CAY_TRY(removeOthers(dir, parts));
    for (const Part* part : parts) {
      CAY_TRY(part->kind == Part::Kind::kFile ? resetFile(dir, *part) : resetFolder(dir, *part));
    }
    return {};
  }

 private:
  static Result<> removeOthers(int dir, const std::vector<const Part*>& parts) {
    sys::DirectoryStream entries(dir);
    // Again until nothing is left: not every file system shows all while some are being removed.
    for (bool removed = true; removed;) {
      CAY_TRY(entries.rewind());
      removed = false;
      for (;;) {
        CAY_ASSIGN(const auto entry, entries.next());
        if (!entry) break;
        const auto isEntry = [&](const Part* part) { return nameOf(part->path) == entry->name; };
        if (std::ranges::any_of(parts, isEntry)) continue;
        CAY_TRY(sys::removeTree(dir, entry->name));
        removed = true;
      }
    }
    return {};
  }

  static Result<> resetFile(int dir, const Part& part) {
    constexpr int kFlags = O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK;
    const std::string name(nameOf(part.path));
    if (sys::openAt(dir, name.c_str(), kFlags)) return {};
    return replace(dir, name, part);
  }

  Result<> resetFolder(int dir, const Part& part) {
    constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    const std::string name(nameOf(part.path));
    auto folder = sys::openAt(dir, name.c_str(), kFlags);
    if (!folder || !mayStay(folder->get(), part)) {
      CAY_TRY(replace(dir, name, part));
      folder = sys::openAt(dir, name.c_str(), kFlags);
    }
    if (!folder) return std::unexpected(std::move(folder).error());
    return reset(folder->get(), part.path);
  }

  static Result<> replace(int dir, const std::string& name, const Part& part) {
    CAY_TRY(sys::removeTree(dir, name.c_str()));
    Part here = part;
    here.path = name;
    return makePart(dir, here);
  }

  const Shape& shape_;
};

}  // namespace

Result<> resetFolder(const Shape& shape, int folder) {
  return Reset(shape).reset(folder, {});
}

Result<> makePart(int folder, const Part& part) {
  const char* path = part.path.c_str();
  if (part.kind == Part::Kind::kFile) {
    CAY_ASSIGN(const Fd file, sys::openAt(folder, path, O_WRONLY | O_CREAT | O_EXCL, part.mode));
    return sys::chmodFd(file.get(), part.mode);
  }
  CAY_TRY(sys::makeDirectoryAt(folder, path, part.mode));
  if (::fchmodat(folder, path, part.mode, 0) != 0) return failSys("fchmodat", errno);
  return {};
}

}  // namespace cay::layers
