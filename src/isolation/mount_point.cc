#include "isolation/mount_point.h"

#include <fcntl.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "sys/file.h"

namespace cay::isolation {
namespace {

// What is there under that name, not followed; not valid if nothing is.
Result<Fd> lookAt(const Fd& folder, const char* name) {
  auto found = sys::openAt(folder.get(), name, O_PATH | O_NOFOLLOW);
  if (!found && found.error().sys == ENOENT) return Fd();
  return found;
}

Result<> make(const Fd& folder, const char* name, PointKind kind) {
  if (kind == PointKind::kFolder) return sys::makeDirectoryAt(folder.get(), name, 0755);
  CAY_TRY(sys::openAt(folder.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  return {};
}

// `shown`: its path, for the words of an error.
Result<Fd> enter(const Fd& folder, const char* name, PointKind kind, const std::string& shown) {
  CAY_ASSIGN(Fd found, lookAt(folder, name));
  if (found.valid() && kind == PointKind::kFileForLink) {
    CAY_ASSIGN(const sys::Stat info, sys::statFd(found.get()));
    if (S_ISLNK(info.st_mode)) {
      CAY_TRY(sys::unlinkAt(folder.get(), name));
      found.reset();
    }
  }
  if (!found.valid()) {
    if (auto made = make(folder, name, kind); !made && made.error().sys != EEXIST) {
      return std::unexpected(std::move(made).error().wrap("cannot make " + quoted(shown)));
    }
    CAY_ASSIGN(found, lookAt(folder, name));
    if (!found.valid()) return fail(Code::kConflict, quoted(shown) + " does not stay where it is");
  }
  CAY_ASSIGN(const sys::Stat info, sys::statFd(found.get()));
  if (S_ISLNK(info.st_mode)) {
    return fail(Code::kConflict,
                quoted(shown) + " is a link, and nothing is mounted through or on links");
  }
  if (kind == PointKind::kFolder ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode)) {
    return fail(Code::kConflict, quoted(shown) + " is not a " +
                                     (kind == PointKind::kFolder ? "folder" : "regular file"));
  }
  return found;
}

}  // namespace

AsSandboxRoot::AsSandboxRoot(const Plan& plan) {
  if (plan.mode != Mode::kFull) return;
  const int before = ::prctl(PR_GET_SECUREBITS);
  // Without it the change would take away the right to write into a root of mode 0555.
  if (before < 0 || ::prctl(PR_SET_SECUREBITS, before | SECBIT_NO_SETUID_FIXUP) != 0) return;
  bitsBefore_ = before;
  ::setfsgid(plan.firstUid);
  ::setfsuid(plan.firstUid);
}

AsSandboxRoot::~AsSandboxRoot() {
  if (bitsBefore_ < 0) return;
  ::setfsuid(0);
  ::setfsgid(0);
  ::prctl(PR_SET_SECUREBITS, bitsBefore_);
}

Result<> checkPlainPath(const std::string& path) {
  const auto wrong = [&] {
    return fail(Code::kInvalid, quoted(path) + " is not a plain absolute path");
  };
  if (!path.starts_with('/') || path.contains('\0')) return wrong();
  for (size_t at = 1; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = std::string_view(path).substr(at, end - at);
    if (name.empty() || name == "." || name == "..") return wrong();
    at = end + 1;
  }
  return {};
}

Result<Fd> mountPointAt(const Fd& root, const std::string& path, PointKind kind) {
  CAY_TRY(checkPlainPath(path));
  Fd folder;
  for (size_t at = 1;;) {
    const size_t end = path.find('/', at);
    const bool last = end == std::string::npos;
    const std::string name = path.substr(at, end - at);
    CAY_ASSIGN(Fd next, enter(folder.valid() ? folder : root, name.c_str(),
                              last ? kind : PointKind::kFolder, path.substr(0, end)));
    if (last) return next;
    folder = std::move(next);
    at = end + 1;
  }
}

}  // namespace cay::isolation
