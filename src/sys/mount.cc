#include "sys/mount.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

namespace cay::sys {
namespace {

constexpr int kDetach = 2;  // MNT_DETACH of <sys/mount.h>
// MS_RDONLY and so on, which <sys/mount.h> and <linux/mount.h> both define.
constexpr unsigned long kReadOnly = 1;
constexpr unsigned long kNoSuid = 2;
constexpr unsigned long kNoDevices = 4;
constexpr unsigned long kNoExec = 8;
constexpr unsigned long kPrivateAll = 0x4000 | (1UL << 18);  // MS_REC | MS_PRIVATE

uint64_t attributesOf(const MountFlags& flags) {
  return (flags.readOnly ? MOUNT_ATTR_RDONLY : 0ULL) | (flags.noSuid ? MOUNT_ATTR_NOSUID : 0ULL) |
         (flags.noDevices ? MOUNT_ATTR_NODEV : 0ULL) | (flags.noExec ? MOUNT_ATTR_NOEXEC : 0ULL);
}

// The kernel explains a refused mount in the context's log, one line for each read.
std::string reasonOf(int context) {
  char text[256];
  const ssize_t length = ::read(context, text, sizeof text);
  if (length <= 2) return {};
  std::string_view reason(text, static_cast<size_t>(length));
  reason.remove_prefix(2);  // "e "
  while (reason.ends_with('\n')) reason.remove_suffix(1);
  return " (" + std::string(reason) + ")";
}

// By the old call, which takes all options as one text of at most a page.
Result<> mountByText(const char* at, const char* type, std::span<const MountOption> options,
                     const MountFlags& flags) {
  const std::string what = std::string("mount of ") + type;
  std::string text;
  std::string source = type;
  for (const auto& [name, value] : options) {
    if (value.contains(',')) return failSys(what, EINVAL);
    if (std::string_view(name) == "source") {
      source = value;
      continue;
    }
    text.append(text.empty() ? "" : ",").append(name);
    if (!value.empty()) text.append("=").append(value);
  }
  if (text.size() >= static_cast<size_t>(::sysconf(_SC_PAGESIZE))) return failSys(what, E2BIG);
  const unsigned long bits = (flags.readOnly ? kReadOnly : 0) | (flags.noSuid ? kNoSuid : 0) |
                             (flags.noDevices ? kNoDevices : 0) | (flags.noExec ? kNoExec : 0);
  if (::syscall(SYS_mount, source.c_str(), at, type, bits, text.c_str()) != 0) {
    return failSys(what + " at " + at, errno);
  }
  return {};
}

}  // namespace

Result<Fd> cloneMount(int dir, const char* path, Submounts submounts) {
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
                         (submounts == Submounts::kInclude ? unsigned{AT_RECURSIVE} : 0U) |
                         (*path == '\0' ? unsigned{AT_EMPTY_PATH} : 0U);
  const long fd = ::syscall(SYS_open_tree, dir, path, flags);
  if (fd < 0) return failSys(std::string("open_tree ") + path, errno);
  return Fd(static_cast<int>(fd));
}

Result<> setMount(const Fd& mount, const MountFlags& flags, int userNamespace) {
  mount_attr attributes{};
  attributes.attr_set = attributesOf(flags);
  if (userNamespace >= 0) {
    attributes.attr_set |= MOUNT_ATTR_IDMAP;
    attributes.userns_fd = static_cast<uint64_t>(userNamespace);
  }
  if (::syscall(SYS_mount_setattr, mount.get(), "", AT_EMPTY_PATH, &attributes,
                sizeof attributes) != 0) {
    return failSys("mount_setattr", errno);
  }
  return {};
}

Result<> attachMount(const Fd& mount, const char* at) {
  if (::syscall(SYS_move_mount, mount.get(), "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return failSys(std::string("move_mount to ") + at, errno);
  }
  return {};
}

Result<> attachMount(const Fd& mount, const Fd& at) {
  if (::syscall(SYS_move_mount, mount.get(), "", at.get(), "",
                MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0) {
    return failSys("move_mount", errno);
  }
  return {};
}

Result<> moveMount(const char* from, const char* to) {
  if (::syscall(SYS_move_mount, AT_FDCWD, from, AT_FDCWD, to, 0) != 0) {
    return failSys(std::string("move_mount ") + from + " to " + to, errno);
  }
  return {};
}

Result<Fd> newMount(const char* type, std::span<const MountOption> options,
                    const MountFlags& flags) {
  const std::string what = std::string("mount of ") + type;
  const Fd context(static_cast<int>(::syscall(SYS_fsopen, type, FSOPEN_CLOEXEC)));
  if (!context.valid()) return failSys(what, errno);
  const auto failed = [&] {
    const int error = errno;
    return failSys(what + reasonOf(context.get()), error);
  };
  for (const auto& [name, value] : options) {
    const long set =
        value.empty()
            ? ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_FLAG, name, nullptr, 0)
            : ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, name, value.c_str(), 0);
    if (set != 0) return failed();
  }
  if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return failed();
  }
  const long mount = ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, attributesOf(flags));
  if (mount < 0) return failed();
  return Fd(static_cast<int>(mount));
}

Result<> mountAt(const char* at, const char* type, std::span<const MountOption> options,
                 const MountFlags& flags) {
  const auto isLong = [](const MountOption& option) { return option.second.size() > kMaxOption; };
  if (std::ranges::any_of(options, isLong)) return mountByText(at, type, options, flags);
  CAY_ASSIGN(const Fd mount, newMount(type, options, flags));
  return attachMount(mount, at);
}

Result<> detachMount(const char* path) {
  if (::syscall(SYS_umount2, path, kDetach) != 0) {
    return failSys(std::string("umount ") + path, errno);
  }
  return {};
}

Result<> makeMountsPrivate() {
  if (::syscall(SYS_mount, nullptr, "/", nullptr, kPrivateAll, nullptr) != 0) {
    return failSys("making mounts private", errno);
  }
  return {};
}

Result<> pivotRoot(const char* newRoot, const char* oldRoot) {
  if (::syscall(SYS_pivot_root, newRoot, oldRoot) != 0) return failSys("pivot_root", errno);
  return {};
}

}  // namespace cay::sys
