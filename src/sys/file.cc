#include "sys/file.h"

#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "base/text.h"
#include "sys/directory_stream.h"
#include "sys/uapi_fs.h"

namespace cay::sys {
namespace {

// Calls until it is not interrupted; `call` returns -1 and errno as system calls do.
template <typename Call>
auto retrying(Call call) {
  auto value = call();
  while (value == -1 && errno == EINTR) value = call();
  return value;
}

template <typename Call>
Result<> done(std::string_view what, Call call) {
  if (retrying(call) == -1) return failSys(what, errno);
  return {};
}

std::string subject(std::string_view call, const char* path) {
  return std::string(call).append(" ").append(quoted(path));
}

}  // namespace

Result<Fd> openAt(int dir, const char* path, int flags, mode_t mode) {
  const int fd = retrying([&] { return ::openat(dir, path, flags | O_CLOEXEC, mode); });
  if (fd == -1) return failSys(subject("openat", path), errno);
  return Fd(fd);
}

Result<Fd> openAt2(int dir, const char* path, int flags, mode_t mode, uint64_t resolve) {
  OpenHow how{.flags = static_cast<uint64_t>(flags) | O_CLOEXEC, .mode = mode, .resolve = resolve};
  constexpr int kAttempts = 64;
  for (int attempt = 1;; ++attempt) {
    const long fd = retrying([&] { return ::syscall(SYS_openat2, dir, path, &how, sizeof how); });
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN || attempt == kAttempts) return failSys(subject("openat2", path), errno);
  }
}

Result<Stat> statFd(int fd) {
  Stat result{};
  CAY_TRY(done("fstat", [&] { return ::fstat(fd, &result); }));
  return result;
}

Result<Stat> statAt(int dir, const char* name, int flags) {
  Stat result{};
  if (retrying([&] { return ::fstatat(dir, name, &result, flags); }) == -1) {
    return failSys(subject("fstatat", name), errno);
  }
  return result;
}

bool isMountPoint(int dir, const char* name) {
  Statx result;
  if (::syscall(SYS_statx, dir, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &result) == -1) {
    return false;
  }
  return (result.attributes & kStatxMountRoot) != 0;
}

int64_t mtimeMs(const Stat& stat) {
  return int64_t{stat.st_mtim.tv_sec} * 1000 + stat.st_mtim.tv_nsec / 1'000'000;
}

int64_t birthNs(int fd) {
  Statx result;
  if (::syscall(SYS_statx, fd, "", AT_EMPTY_PATH, kStatxBirth, &result) == -1) return 0;
  if ((result.mask & kStatxBirth) == 0) return 0;
  return result.birthSeconds * 1'000'000'000 + result.birthNanoseconds;
}

Result<std::vector<DirEntry>> readDirectory(int dir) {
  DirectoryStream stream(dir);
  CAY_TRY(stream.rewind());
  std::vector<DirEntry> entries;
  for (;;) {
    CAY_ASSIGN(const auto entry, stream.next());
    if (!entry) return entries;
    entries.push_back({entry->name, entry->type});
  }
}

Result<> makeDirectoryAt(int dir, const char* name, mode_t mode) {
  return done("mkdirat", [&] { return ::mkdirat(dir, name, mode); });
}

Result<> unlinkAt(int dir, const char* name, int flags) {
  return done("unlinkat", [&] { return ::unlinkat(dir, name, flags); });
}

Result<> renameAt(int fromDir, const char* from, int toDir, const char* to) {
  return done("renameat", [&] { return ::renameat(fromDir, from, toDir, to); });
}

Result<> linkAt(int fromDir, const char* from, int toDir, const char* to, int flags) {
  return done("linkat", [&] { return ::linkat(fromDir, from, toDir, to, flags); });
}

Result<> symlinkAt(const char* target, int dir, const char* name) {
  return done("symlinkat", [&] { return ::symlinkat(target, dir, name); });
}

Result<std::string> readLinkAt(int dir, const char* name) {
  std::array<char, PATH_MAX> buffer;  // the kernel stores no longer target
  const ssize_t length =
      retrying([&] { return ::readlinkat(dir, name, buffer.data(), buffer.size()); });
  if (length == -1) return failSys(subject("readlinkat", name), errno);
  return std::string(buffer.data(), static_cast<size_t>(length));
}

Result<> makeNodeAt(int dir, const char* name, mode_t mode, dev_t device) {
  return done("mknodat", [&] { return ::mknodat(dir, name, mode, device); });
}

Result<> truncateFd(int fd, uint64_t size) {
  if (size > INT64_MAX) return failSys("ftruncate", EFBIG);
  return done("ftruncate", [&] { return ::ftruncate(fd, static_cast<off_t>(size)); });
}

Result<> chmodFd(int fd, mode_t mode) {
  return done("fchmod", [&] { return ::fchmod(fd, mode); });
}

Result<> chownFd(int fd, uid_t uid, gid_t gid) {
  return done("fchown", [&] { return ::fchown(fd, uid, gid); });
}

Result<> chownLinkAt(int dir, const char* name, uid_t uid, gid_t gid) {
  return done("fchownat", [&] { return ::fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW); });
}

Result<> setMtimeAt(int dir, const char* name, timespec mtime) {
  const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, mtime};
  return done("utimensat",
              [&] { return ::utimensat(dir, name, times.data(), AT_SYMLINK_NOFOLLOW); });
}

Result<> setMtimeFd(int fd, timespec mtime) {
  const std::array<timespec, 2> times{timespec{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, mtime};
  return done("futimens", [&] { return ::futimens(fd, times.data()); });
}

Result<> setXattrFd(int fd, const char* name, std::string_view value) {
  return done(subject("fsetxattr", name),
              [&] { return ::fsetxattr(fd, name, value.data(), value.size(), 0); });
}

Result<> lockFd(int fd, Lock lock) {
  return done("flock", [&] { return ::flock(fd, lock == Lock::kShared ? LOCK_SH : LOCK_EX); });
}

Result<bool> tryLockFd(int fd, Lock lock) {
  const int kind = (lock == Lock::kShared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  if (retrying([&] { return ::flock(fd, kind); }) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  return failSys("flock", errno);
}

Result<> syncFileSystem(int fd) {
  return done("syncfs", [&] { return ::syncfs(fd); });
}

Result<> syncFd(int fd) {
  return done("fsync", [&] { return ::fsync(fd); });
}

Result<uint64_t> copyContents(int from, int to) {
  constexpr size_t kPiece = size_t{16} << 20;
  uint64_t total = 0;
  bool acrossFiles =
      true;  // copy_file_range shares blocks where it can; not every pair of files may
  for (;;) {
    const ssize_t got = retrying([&] {
      return acrossFiles ? ::copy_file_range(from, nullptr, to, nullptr, kPiece, 0)
                         : ::sendfile(to, from, nullptr, kPiece);
    });
    if (got > 0) {
      total += static_cast<uint64_t>(got);
    } else if (acrossFiles && total == 0) {
      acrossFiles = false;  // also on 0: /proc files look empty to copy_file_range
    } else if (got == 0) {
      return total;
    } else {
      return failSys("copy", errno);
    }
  }
}

std::string fdPath(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace cay::sys
