#include "isolation/devices.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"
#include "isolation/mount_point.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/uapi_fs.h"

namespace cay::isolation {
namespace {

struct Node {
  const char* name;
  unsigned major;
  unsigned minor;
};
constexpr std::array kNodes = {Node{"null", 1, 3},   Node{"zero", 1, 5},    Node{"full", 1, 7},
                               Node{"random", 1, 8}, Node{"urandom", 1, 9}, Node{"tty", 5, 0}};
struct Link {
  const char* name;
  const char* target;
};
constexpr std::array kLinks = {Link{"fd", "/proc/self/fd"}, Link{"stdin", "/proc/self/fd/0"},
                               Link{"stdout", "/proc/self/fd/1"}, Link{"stderr", "/proc/self/fd/2"},
                               Link{"ptmx", "pts/ptmx"}};

// Device nodes may be made by the machine's root alone; others borrow them, each by a mount.
Result<> makeNode(Mode mode, const std::string& path, const Node& node, const std::string& from) {
  const mode_t kind = mode == Mode::kFull ? S_IFCHR : S_IFREG;
  if (::mknod(path.c_str(), kind | 0666, makedev(node.major, node.minor)) != 0 ||
      ::chmod(path.c_str(), 0666) != 0) {
    return failSys("mknod " + path, errno);
  }
  if (mode == Mode::kFull) return {};
  CAY_ASSIGN(const Fd mount, sys::cloneMount(AT_FDCWD, (from + "/" + node.name).c_str()));
  return sys::attachMount(mount, path.c_str());
}

Result<> addDevice(const std::string& device, const Fd& taken, const std::string& at) {
  // Read-only is the node, not the device: nobody changes its times or attributes.
  CAY_TRY(sys::setMount(taken, {.readOnly = true, .noSuid = true, .noExec = true}));
  const std::string path = at + device.substr(device.rfind('/'));
  CAY_TRY(sys::openAt(AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  return sys::attachMount(taken, path.c_str());
}

}  // namespace

Result<> makeDevices(Mode mode, const std::string& at, const std::string& from) {
  CAY_TRY(sys::mountAt(at.c_str(), "tmpfs", {{"mode", "755"}, {"size", "64k"}},
                       {.noSuid = true, .noExec = true}));
  for (const Node& node : kNodes) CAY_TRY(makeNode(mode, at + "/" + node.name, node, from));
  for (const Link& link : kLinks) {
    if (::symlink(link.target, (at + "/" + link.name).c_str()) != 0) {
      return failSys(std::string("symlink ") + link.name, errno);
    }
  }
  for (const char* folder : {"/pts", "/shm"}) {
    CAY_TRY(sys::makeDirectoryAt(AT_FDCWD, (at + folder).c_str(), 0755));
  }
  return {};
}

Result<Fd> takeDevice(const std::string& path) {
  CAY_TRY(checkPlainPath(path));
  CAY_ASSIGN(const Fd node,
             sys::openAt2(AT_FDCWD, path.c_str(), O_PATH, 0, sys::kResolveNoSymlinks));
  CAY_ASSIGN(const sys::Stat info, sys::statFd(node.get()));
  if (!S_ISCHR(info.st_mode)) {
    return fail(Code::kConflict, quoted(path) + " is not a character device");
  }
  return sys::cloneMount(node.get(), "");
}

Result<> addDevices(const Plan& plan, std::span<const Fd> taken, const std::string& at) {
  for (size_t i = 0; i < plan.devices.size(); ++i) {
    if (auto added = addDevice(plan.devices[i], taken[i], at); !added) {
      return std::unexpected(
          std::move(added).error().wrap("cannot show " + quoted(plan.devices[i])));
    }
  }
  return {};
}

}  // namespace cay::isolation
