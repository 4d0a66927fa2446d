#include "files/copy_tree.h"

#include "base/text.h"
#include "files/entry.h"
#include "files/place.h"
#include "sys/file.h"

namespace cay::files {
namespace {

constexpr int kMaxDepth = 200;  // two descriptors for each level

Result<> copyEntry(int fromDir, const std::string& from, int toDir, const std::string& to,
                   const std::string& path, int depth);

// Owner before mode: a change of owner clears bits of the mode.
Result<> giveAttributes(int target, const sys::Stat& stat) {
  (void)sys::chownFd(target, stat.st_uid,
                     stat.st_gid);  // where it is not ours to give, it stays ours
  CAY_TRY(sys::chmodFd(target, stat.st_mode & 07777));
  return sys::setMtimeFd(target, stat.st_mtim);
}

Result<> copyLink(int fromDir, const std::string& from, int toDir, const std::string& to,
                  const sys::Stat& stat) {
  CAY_ASSIGN(const std::string target, sys::readLinkAt(fromDir, from.c_str()));
  CAY_TRY(sys::symlinkAt(target.c_str(), toDir, to.c_str()));
  (void)sys::chownLinkAt(toDir, to.c_str(), stat.st_uid, stat.st_gid);
  return sys::setMtimeAt(toDir, to.c_str(), stat.st_mtim);
}

Result<> copyFile(int fromDir, const std::string& from, int toDir, const std::string& to,
                  const sys::Stat& stat) {
  CAY_ASSIGN(const Fd source,
             sys::openAt(fromDir, from.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  CAY_ASSIGN(const Fd target,
             sys::openAt(toDir, to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  CAY_TRY(sys::copyContents(source.get(), target.get()));
  return giveAttributes(target.get(), stat);
}

Result<> copyDirectory(int fromDir, const std::string& from, int toDir, const std::string& to,
                       const sys::Stat& stat, const std::string& path, int depth) {
  if (depth == kMaxDepth) {
    return fail(Code::kInvalid, "too deep to be copied to another file system: " + quoted(path));
  }
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  CAY_ASSIGN(const Fd source, named(sys::openAt(fromDir, from.c_str(), kFlags), path));
  CAY_TRY(named(sys::makeDirectoryAt(toDir, to.c_str(), 0700), path));
  CAY_ASSIGN(const Fd target, named(sys::openAt(toDir, to.c_str(), kFlags), path));
  CAY_ASSIGN(const auto entries, named(sys::readDirectory(source.get()), path));
  for (const sys::DirEntry& below : entries) {
    CAY_TRY(copyEntry(source.get(), below.name, target.get(), below.name,
                      joinPath(path, below.name), depth + 1));
  }
  return named(giveAttributes(target.get(), stat), path);
}

Result<> copyEntry(int fromDir, const std::string& from, int toDir, const std::string& to,
                   const std::string& path, int depth) {
  CAY_ASSIGN(const sys::Stat stat, named(sys::statAt(fromDir, from.c_str()), path));
  if (S_ISDIR(stat.st_mode)) return copyDirectory(fromDir, from, toDir, to, stat, path, depth);
  if (S_ISLNK(stat.st_mode)) return named(copyLink(fromDir, from, toDir, to, stat), path);
  CAY_TRY(requireRegular(stat, path));
  return named(copyFile(fromDir, from, toDir, to, stat), path);
}

}  // namespace

Result<> copyTree(int fromDir, const std::string& from, int toDir, const std::string& to,
                  const std::string& shownPath) {
  return copyEntry(fromDir, from, toDir, to, shownPath, 0);
}

}  // namespace cay::files
