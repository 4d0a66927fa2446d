#include "sys/namespaces.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "sys/io.h"
#include "sys/process.h"

// Declared here since <sched.h> and <linux/sched.h> define the same names.
extern "C" int unshare(int) noexcept;
extern "C" int setns(int, int) noexcept;

namespace cay::sys {
namespace {

Result<Fd> mapAndOpen(const std::string& proc, uint32_t first, uint32_t count) {
  const std::string map = "0 " + std::to_string(first) + " " + std::to_string(count);
  CAY_TRY(writeFileAt(AT_FDCWD, (proc + "/uid_map").c_str(), map));
  CAY_TRY(writeFileAt(AT_FDCWD, (proc + "/gid_map").c_str(), map));
  Fd space(::open((proc + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.valid()) return failSys("a user namespace's descriptor", errno);
  return space;
}

}  // namespace

Result<pid_t> forkInto(uint64_t namespaces) {
  clone_args args{};
  args.flags = namespaces;
  args.exit_signal = SIGCHLD;
  const long pid = ::syscall(SYS_clone3, &args, sizeof args);
  if (pid < 0) return failSys("clone3", errno);
  return static_cast<pid_t>(pid);
}

Result<Fd> newUserNamespace(const char* procFolder, uint32_t first, uint32_t count) {
  CAY_ASSIGN(const pid_t child, cloneHolder(CLONE_NEWUSER));
  auto space = mapAndOpen(std::string(procFolder) + "/" + std::to_string(child), first, count);
  ::kill(child, SIGKILL);
  (void)::waitpid(child, nullptr, 0);
  return space;
}

Result<> enterNewUserNamespace(uid_t uid, gid_t gid) {
  const std::string uids = std::to_string(uid) + " " + std::to_string(::geteuid()) + " 1";
  const std::string gids = std::to_string(gid) + " " + std::to_string(::getegid()) + " 1";
  CAY_TRY(unshare(CLONE_NEWUSER));
  CAY_TRY(writeFileAt(AT_FDCWD, "/proc/self/setgroups", "deny"));
  CAY_TRY(writeFileAt(AT_FDCWD, "/proc/self/uid_map", uids));
  return writeFileAt(AT_FDCWD, "/proc/self/gid_map", gids);
}

Result<Fd> ownerBelow(const Fd& space) {
  Fd owner(::ioctl(space.get(), NS_GET_USERNS));
  if (!owner.valid()) return failSys("the owner of a namespace", errno);
  struct stat theirs{};
  struct stat own{};
  if (::fstat(owner.get(), &theirs) != 0 || ::stat("/proc/self/ns/user", &own) != 0) {
    return failSys("the owner of a namespace", errno);
  }
  if (theirs.st_ino == own.st_ino) return Fd();
  return owner;
}

Result<> unshare(int namespaces) {
  if (::unshare(namespaces) != 0) return failSys("unshare", errno);
  return {};
}

Result<> enter(const Fd& space, int kind) {
  if (::setns(space.get(), kind) != 0) return failSys("setns", errno);
  return {};
}

}  // namespace cay::sys
