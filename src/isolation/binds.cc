#include "isolation/binds.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "isolation/mount_point.h"
#include "sys/file.h"
#include "sys/mount.h"
#include "sys/uapi_fs.h"

namespace cay::isolation {
namespace {

bool isBelow(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/';
}

// A link of the image may give way to a file, since only the sandbox's own top changes by it; what
// lies in another bind belongs to others.
PointKind kindOf(const Plan& plan, const Bind& bind) {
  if (!bind.isFile) return PointKind::kFolder;
  const bool inOther = std::ranges::any_of(
      plan.binds, [&](const Bind& other) { return isBelow(bind.at, other.at); });
  return inOther ? PointKind::kFile : PointKind::kFileForLink;
}

// Whoever may read it on the host may read it inside, whatever its owner is called there.
bool isForAllToRead(const Bind& bind, const Fd& source) {
  const auto info = sys::statFd(source.get());
  return bind.isFile && bind.readOnly && info && (info->st_mode & S_IROTH) != 0;
}

Result<> mountOne(const Plan& plan, const Bind& bind, const Fd& source, const Fd& root,
                  int userNamespace) {
  const sys::MountFlags flags{.readOnly = bind.readOnly, .noSuid = true, .noDevices = true};
  auto set = sys::setMount(source, flags, plan.mode == Mode::kFull ? userNamespace : -1);
  if (!set && set.error().sys == EINVAL) {
    if (!isForAllToRead(bind, source)) {
      return fail(Code::kExhausted, "its file system cannot show files with other owners");
    }
    set = sys::setMount(source, flags);
  }
  CAY_TRY(set);
  CAY_ASSIGN(const Fd at, mountPointAt(root, bind.at, kindOf(plan, bind)));
  return sys::attachMount(source, at);
}

}  // namespace

Result<> checkBind(const Bind& bind) {
  CAY_TRY(checkPlainPath(bind.source));
  CAY_TRY(checkPlainPath(bind.at));
  for (const char* special : {"/proc", "/dev", "/sys"}) {
    if (bind.at == special || isBelow(bind.at, special)) {
      return fail(Code::kInvalid, "nothing can be mounted at " + quoted(bind.at));
    }
  }
  return {};
}

Result<Fd> takeSource(const Bind& bind) {
  CAY_TRY(checkBind(bind));
  CAY_ASSIGN(const Fd source,
             sys::openAt2(AT_FDCWD, bind.source.c_str(), O_PATH, 0, sys::kResolveNoSymlinks));
  CAY_ASSIGN(const sys::Stat info, sys::statFd(source.get()));
  if (bind.isFile ? !S_ISREG(info.st_mode) : !S_ISDIR(info.st_mode)) {
    return fail(Code::kConflict,
                quoted(bind.source) + " is not a " + (bind.isFile ? "regular file" : "folder"));
  }
  return sys::cloneMount(source.get(), "");
}

Result<> mountBinds(const Plan& plan, std::span<const Fd> sources, const Fd& root,
                    int userNamespace) {
  const AsSandboxRoot owner(plan);
  for (size_t i = 0; i < plan.binds.size(); ++i) {
    const Bind& bind = plan.binds[i];
    if (auto mounted = mountOne(plan, bind, sources[i], root, userNamespace); !mounted) {
      return std::unexpected(std::move(mounted).error().wrap("cannot mount " + quoted(bind.source) +
                                                             " at " + quoted(bind.at)));
    }
  }
  return {};
}

}  // namespace cay::isolation
