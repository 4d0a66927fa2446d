#include "files/directories.h"

#include <cerrno>

#include "base/text.h"
#include "sys/remove_tree.h"

namespace cay::files {

Result<> makeDirectories(const Place& place, const std::string& absolute) {
  if (place.open(absolute, O_PATH | O_DIRECTORY)) return {};
  for (size_t end = absolute.find('/', 1);; end = absolute.find('/', end + 1)) {
    const std::string prefix = absolute.substr(0, end);
    auto found = place.open(prefix, O_PATH | O_DIRECTORY);
    if (!found && found.error().sys == ENOENT) {
      CAY_ASSIGN(const Location at, place.locate(prefix));
      const auto made = sys::makeDirectoryAt(at.dir.get(), at.name.c_str(), 0777);
      if (!made && made.error().sys != EEXIST) return failPath(made.error(), prefix);
      found = place.open(prefix, O_PATH | O_DIRECTORY);
    }
    if (!found) {
      // Something else is there: a file, or a link that leads nowhere.
      const int err = found.error().sys;
      if (err != ENOTDIR && err != ENOENT) return std::unexpected(std::move(found).error());
      return fail(Code::kConflict, "not a directory: " + quoted(prefix));
    }
    if (end == std::string::npos) return {};
  }
}

Result<> makeDirectory(const Place& place, std::string_view path) {
  CAY_ASSIGN(const auto acting, place.act());
  CAY_ASSIGN(const std::string absolute, place.absolute(path));
  return makeDirectories(place, absolute);
}

Result<> remove(const Place& place, std::string_view path, Recursive recursive) {
  CAY_ASSIGN(const auto acting, place.act());
  CAY_ASSIGN(const std::string absolute, place.absolute(path));
  CAY_ASSIGN(const Fd found, place.open(absolute, O_PATH | O_NOFOLLOW));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(found.get()));
  if (S_ISDIR(stat.st_mode)) {
    CAY_ASSIGN(const bool precious, place.holdsHome(stat));
    if (precious) {
      return fail(Code::kInvalid,
                  "refusing to delete " + quoted(absolute) + ": the sandbox's home is in it");
    }
  }
  CAY_ASSIGN(const Location at, place.locate(absolute));
  if (recursive == Recursive::kYes) return sys::removeTree(at.dir.get(), at.name.c_str());
  const int flags = S_ISDIR(stat.st_mode) ? AT_REMOVEDIR : 0;
  const auto removed = sys::unlinkAt(at.dir.get(), at.name.c_str(), flags);
  if (removed) return {};
  if (removed.error().sys == ENOTEMPTY || removed.error().sys == EEXIST) {
    return fail(Code::kConflict,
                "the directory is not empty (recursive=1 deletes it all): " + quoted(absolute));
  }
  return failPath(removed.error(), absolute);
}

}  // namespace cay::files
