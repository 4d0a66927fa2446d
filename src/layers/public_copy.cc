#include "layers/public_copy.h"

#include <sys/stat.h>

#include "base/fd.h"
#include "base/text.h"
#include "sys/file.h"

namespace cay::layers {
namespace {

constexpr int kMaxDepth = 32;  // two descriptors for each level

constexpr int kReadFile = O_RDONLY | O_NONBLOCK;

// False if it is left out. The mode is looked at once the file is open, so that no other file can
// be put in its place meanwhile.
Result<bool> copyFile(const Result<Fd>& source, int to, const char* name) {
  if (!source) return false;
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(source->get()));
  if (!S_ISREG(stat.st_mode) || (stat.st_mode & S_IROTH) == 0) return false;
  CAY_ASSIGN(const Fd copy, sys::openAt(to, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  CAY_TRY(sys::copyContents(source->get(), copy.get()));
  CAY_TRY(sys::chmodFd(copy.get(), stat.st_mode & 0777));
  CAY_TRY(sys::setMtimeFd(copy.get(), stat.st_mtim));
  return true;
}

class PublicCopy {
 public:
  explicit PublicCopy(bool (*leaveOut)(const std::string&)) : leaveOut_(leaveOut) {}

  Result<> copyFolder(int from, int to, const std::string& prefix, int depth) {
    CAY_ASSIGN(const auto entries, sys::readDirectory(from));
    for (const sys::DirEntry& entry : entries) {
      const std::string path = prefix + entry.name;
      if (leaveOut_(path) || sys::isMountPoint(from, entry.name.c_str())) continue;
      if (auto copied = copyEntry(from, to, entry.name.c_str(), path, depth); !copied) {
        return std::unexpected(std::move(copied).error().wrap("copy " + quoted(path)));
      }
    }
    return {};
  }

 private:
  Result<> copyEntry(int from, int to, const char* name, const std::string& path, int depth) {
    const auto stat = sys::statAt(from, name);
    if (!stat) return {};
    if (S_ISREG(stat->st_mode)) {
      CAY_TRY(copyFile(sys::openAt(from, name, kReadFile | O_NOFOLLOW), to, name));
      return {};
    }
    if (S_ISLNK(stat->st_mode)) {
      const auto target = sys::readLinkAt(from, name);
      return target ? sys::symlinkAt(target->c_str(), to, name) : Result<>();
    }
    if (!S_ISDIR(stat->st_mode) || depth == kMaxDepth) return {};
    const auto below = sys::openAt(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!below) return {};
    return copyOpenFolder(below->get(), to, name, path, depth);
  }

  Result<> copyOpenFolder(int from, int to, const char* name, const std::string& path, int depth) {
    CAY_ASSIGN(const sys::Stat stat, sys::statFd(from));
    constexpr mode_t kOpen = S_IROTH | S_IXOTH;
    if ((stat.st_mode & kOpen) != kOpen) return {};
    CAY_TRY(sys::makeDirectoryAt(to, name, 0700));
    CAY_ASSIGN(const Fd copy, sys::openAt(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    CAY_TRY(copyFolder(from, copy.get(), path + "/", depth + 1));
    CAY_TRY(sys::chmodFd(copy.get(), stat.st_mode & 0777));
    return sys::setMtimeFd(copy.get(), stat.st_mtim);
  }

  bool (*leaveOut_)(const std::string&);
};

}  // namespace

Result<bool> copyPublicFile(int fromDir, const char* from, int to, const char* name) {
  return copyFile(sys::openAt(fromDir, from, kReadFile), to, name);
}

Result<> copyPublic(int from, int to, bool (*leaveOut)(const std::string& path)) {
  return PublicCopy(leaveOut).copyFolder(from, to, "", 0);
}

}  // namespace cay::layers
