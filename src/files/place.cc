#include "files/place.h"

#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "files/path_text.h"
#include "sys/uapi_fs.h"

namespace cay::files {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel

std::string normalised(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (!part.empty() && part != ".") out.append("/").append(part);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return out.empty() ? "/" : out;
}

bool sameFile(const sys::Stat& a, const sys::Stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

std::string joinPath(std::string_view dir, std::string_view name) {
  std::string path(dir);
  if (!path.ends_with('/')) path.push_back('/');
  return path.append(name);
}

std::string parentOf(const std::string& absolute) {
  const size_t slash = absolute.rfind('/');
  return slash == 0 ? "/" : absolute.substr(0, slash);
}

Error pathError(Error error, std::string_view path) {
  if (error.sys == 0) return error;
  std::string text = errnoText(error.sys);
  // Lower case as all our messages, unless the sentence starts with an abbreviation.
  if (text.size() > 1 && text[1] >= 'a' && text[1] <= 'z') {
    text[0] = static_cast<char>(text[0] | 0x20);
  }
  error.message = text + ": " + quoted(path);
  return error;
}

Result<std::shared_ptr<const Place>> Place::create(Fd root, const std::string& home,
                                                   std::optional<sys::Identity> identity,
                                                   Paths paths, std::optional<OwnIds> ids) {
  CAY_ASSIGN(const sys::Stat top, sys::statFd(root.get()));
  bool confined = true;
  if (const auto probe = sys::openAt2(root.get(), "/", O_PATH, 0, sys::kResolveInRoot); !probe) {
    if (probe.error().sys != ENOSYS && probe.error().sys != EPERM) {
      return std::unexpected(probe.error());
    }
    CAY_ASSIGN(const sys::Stat own, sys::statAt(AT_FDCWD, "/"));
    if (!sameFile(top, own) || paths == Paths::kBeneath) {
      return fail(Code::kInternal, "paths cannot be confined to a root here: openat2 is missing");
    }
    confined = false;
  }
  if (!home.starts_with('/')) return fail(Code::kInvalid, "the home must be an absolute path");
  return std::shared_ptr<const Place>(
      new Place(std::move(root), normalised(home), identity, paths, ids, confined));
}

Result<std::string> Place::absolute(std::string_view requested) const {
  if (requested.empty()) return fail(Code::kInvalid, "the path is empty");
  if (requested.contains('\0')) return fail(Code::kInvalid, "the path contains a NUL byte");
  std::string path;
  if (paths_ != Paths::kRoot) {
    path = clamped(requested);
  } else {
    path = normalised(requested.starts_with('/') ? std::string(requested)
                                                 : joinPath(home_, requested));
  }
  if (const auto bytes = unshown(path); bytes && presence(*bytes) > presence(path)) return *bytes;
  return path;
}

int Place::presence(const std::string& absolute) const {
  if (walk(absolute, O_PATH | O_NOFOLLOW, 0)) return 2;
  return walk(parentOf(absolute), O_PATH | O_DIRECTORY, 0) ? 1 : 0;
}

std::string Place::inside(const std::string& absolute) const {
  if (paths_ != Paths::kHome || home_ == "/") return absolute;
  return absolute == "/" ? home_ : home_ + absolute;
}

Result<Fd> Place::walkInside(const std::string& inside, int flags, mode_t mode,
                             uint64_t resolve) const {
  if (!confined_) return sys::openAt(root_.get(), inside.c_str(), flags, mode);
  if (paths_ != Paths::kBeneath) {
    return sys::openAt2(root_.get(), inside.c_str(), flags, mode, sys::kResolveInRoot | resolve);
  }
  const char* relative = inside == "/" ? "." : inside.c_str() + 1;
  auto found = sys::openAt2(root_.get(), relative, flags, mode, sys::kResolveBeneath | resolve);
  if (!found && found.error().sys == EXDEV) {
    return fail(Code::kInvalid, "a link leads out of the home: " + quoted(inside));
  }
  return found;
}

Result<Fd> Place::walk(const std::string& absolute, int flags, mode_t mode) const {
  return walkInside(inside(absolute), flags, mode);
}

Result<Fd> Place::open(const std::string& absolute, int flags, mode_t mode) const {
  return named(walk(absolute, flags, mode), absolute);
}

Result<Fd> Place::openWithoutLinks(const std::string& absolute, int flags) const {
  if (!confined_) return fail(Code::kInternal, "links cannot be refused here: openat2 is missing");
  return named(walkInside(inside(absolute), flags, 0, sys::kResolveNoSymlinks), absolute);
}

Result<Location> Place::locateInside(const std::string& inside, const std::string& shown) const {
  const size_t slash = inside.rfind('/');
  std::string name = inside.substr(slash + 1);
  if (name.empty() || name == "..") {
    return fail(Code::kInvalid, "the path does not name an entry of a directory: " + quoted(shown));
  }
  CAY_ASSIGN(Fd dir, named(walkInside(parentOf(inside), O_PATH | O_DIRECTORY, 0), shown));
  return Location{std::move(dir), std::move(name)};
}

Result<Location> Place::locate(const std::string& absolute) const {
  if (absolute == "/") {
    return fail(Code::kInvalid, "the path does not name an entry of a directory: '/'");
  }
  return locateInside(inside(absolute), absolute);
}

Result<Location> Place::locateTarget(const std::string& absolute) const {
  std::string at = absolute == "/" ? absolute : inside(absolute);
  for (int links = 0; links <= kMaxLinks; ++links) {
    CAY_ASSIGN(Location location, locateInside(at, absolute));
    const auto target = sys::readLinkAt(location.dir.get(), location.name.c_str());
    if (!target) {
      const int err = target.error().sys;
      if (err == EINVAL || err == ENOENT) return location;  // no link, or nothing there yet
      return failPath(target.error(), absolute);
    }
    const bool fromTop = target->starts_with('/');
    if (fromTop && paths_ == Paths::kBeneath) {
      return fail(Code::kInvalid, "a link leads out of the home: " + quoted(absolute));
    }
    // As text below the link's directory: the next walk starts at the root again and stays inside
    // it.
    at = normalised(fromTop ? *target : joinPath(parentOf(at), *target));
  }
  return failPath(sysError("readlink", ELOOP), absolute);
}

sys::Stat Place::seenInside(sys::Stat stat) const {
  constexpr uint32_t kNobody = 65534;
  if (!ids_) return stat;
  const auto inside = [&](uint32_t id, uint32_t first) {
    return id >= first && id - first < ids_->count ? id - first : kNobody;
  };
  stat.st_uid = inside(stat.st_uid, ids_->uid);
  stat.st_gid = inside(stat.st_gid, ids_->gid);
  return stat;
}

Result<bool> Place::holdsHome(const sys::Stat& directory) const {
  CAY_ASSIGN(const sys::Stat top, sys::statFd(root_.get()));
  if (sameFile(directory, top)) return true;
  auto at = walkInside(home_, O_PATH | O_DIRECTORY, 0);
  if (!at) return at.error().sys == ENOENT ? Result<bool>(false) : failPath(at.error(), home_);
  for (;;) {
    CAY_ASSIGN(const sys::Stat here, sys::statFd(at->get()));
    if (sameFile(here, directory)) return true;
    if (sameFile(here, top)) return false;
    CAY_ASSIGN(Fd up, sys::openAt(at->get(), "..", O_PATH | O_DIRECTORY));
    CAY_ASSIGN(const sys::Stat above, sys::statFd(up.get()));
    if (sameFile(above, here)) return false;  // the process's own root: nothing is above it
    *at = std::move(up);
  }
}

}  // namespace cay::files
