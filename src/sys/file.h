// Files: one thin wrapper per system call. Every descriptor is close-on-exec, EINTR is retried,
// nothing is followed or created unless the flags say so. No policy: that is the files room.
//
// Paths are given as a directory descriptor first and a name second; AT_FDCWD works as usual. All
// calls may block on a slow file system.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

Result<Fd> openAt(int dir, const char* path, int flags, mode_t mode = 0);
// openat2; ENOSYS or EPERM where the kernel or a seccomp filter does not have it. EAGAIN, which the
// kernel gives when a rename raced with "..", is retried a bounded number of times.
Result<Fd> openAt2(int dir, const char* path, int flags, mode_t mode, uint64_t resolve);

using Stat = struct stat;
Result<Stat> statFd(int fd);
// Does not follow a link at the end unless `flags` lacks AT_SYMLINK_NOFOLLOW.
Result<Stat> statAt(int dir, const char* name, int flags = AT_SYMLINK_NOFOLLOW);
// True if something is mounted at the name; unknown, and so false, before Linux 5.8.
bool isMountPoint(int dir, const char* name);
int64_t mtimeMs(const Stat& stat);
// When the file was created, in nanoseconds; 0 where the file system does not know.
int64_t birthNs(int fd);

struct DirEntry {
  std::string name;
  unsigned char type;  // DT_DIR, …; DT_UNKNOWN where the file system does not say
};
// Everything but "." and "..", in no order. `dir` must be open for reading; it is read from its
// start.
Result<std::vector<DirEntry>> readDirectory(int dir);

Result<> makeDirectoryAt(int dir, const char* name, mode_t mode);
Result<> unlinkAt(int dir, const char* name, int flags = 0);
Result<> renameAt(int fromDir, const char* from, int toDir, const char* to);
Result<> linkAt(int fromDir, const char* from, int toDir, const char* to, int flags = 0);
Result<> symlinkAt(const char* target, int dir, const char* name);
Result<std::string> readLinkAt(int dir, const char* name);
// `mode` says what it is: S_IFIFO | 0600.
Result<> makeNodeAt(int dir, const char* name, mode_t mode, dev_t device = 0);

Result<> truncateFd(int fd, uint64_t size);
Result<> chmodFd(int fd, mode_t mode);
Result<> chownFd(int fd, uid_t uid, gid_t gid);
Result<> chownLinkAt(int dir, const char* name, uid_t uid, gid_t gid);
// Sets the modification time; of the link itself, if it is one.
Result<> setMtimeAt(int dir, const char* name, timespec mtime);
Result<> setMtimeFd(int fd, timespec mtime);

Result<> setXattrFd(int fd, const char* name, std::string_view value);

// flock(2): of the open file, for as long as it, or a copy of it, is open.
enum class Lock { kShared, kExclusive };
Result<> lockFd(int fd, Lock lock);
// False if somebody else has a lock that stands in the way.
Result<bool> tryLockFd(int fd, Lock lock);

// Until all that was written to the file system is on its disk.
Result<> syncFileSystem(int fd);
// Until this file, or the entries of this directory, are.
Result<> syncFd(int fd);

// Copies from `from` (at its position) to `to` until the end; in the kernel where that is possible.
Result<uint64_t> copyContents(int from, int to);

// "/proc/self/fd/N": the descriptor's file as a path, for calls that take no descriptor.
std::string fdPath(int fd);

}  // namespace cay::sys
