#include "files/move.h"

#include <cerrno>

#include "base/ids.h"
#include "base/text.h"
#include "files/copy_tree.h"
#include "sys/remove_tree.h"

namespace cay::files {
namespace {

Result<> moveAcross(const Location& source, const std::string& fromPath, const Location& target,
                    const std::string& toPath) {
  const std::string hidden = "." + newId("cay-move");
  auto moved = copyTree(source.dir.get(), source.name, target.dir.get(), hidden, fromPath);
  if (moved) {
    moved = named(
        sys::renameAt(target.dir.get(), hidden.c_str(), target.dir.get(), target.name.c_str()),
        toPath);
  }
  if (!moved) {
    (void)sys::removeTree(target.dir.get(), hidden.c_str());
    return moved;
  }
  return sys::removeTree(source.dir.get(), source.name.c_str());
}

}  // namespace

Result<> move(const Place& place, std::string_view from, std::string_view to) {
  CAY_ASSIGN(const auto acting, place.act());
  CAY_ASSIGN(const std::string fromPath, place.absolute(from));
  CAY_ASSIGN(const std::string toPath, place.absolute(to));
  CAY_ASSIGN(const Fd found, place.open(fromPath, O_PATH | O_NOFOLLOW));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(found.get()));
  if (S_ISDIR(stat.st_mode)) {
    CAY_ASSIGN(const bool precious, place.holdsHome(stat));
    if (precious) {
      return fail(Code::kInvalid,
                  "refusing to move " + quoted(fromPath) + ": the sandbox's home is in it");
    }
  }
  CAY_ASSIGN(const Location source, place.locate(fromPath));
  CAY_ASSIGN(const Location target, place.locate(toPath));
  auto renamed =
      sys::renameAt(source.dir.get(), source.name.c_str(), target.dir.get(), target.name.c_str());
  if (renamed) return {};
  const int err = renamed.error().sys;
  if (err == EXDEV) return moveAcross(source, fromPath, target, toPath);
  if (err == ENOTDIR) {
    // A directory onto a file; missing it is not.
    return fail(Code::kConflict, "not a directory: " + quoted(toPath));
  }
  return named(std::move(renamed), err == ENOENT ? fromPath : toPath);
}

}  // namespace cay::files
