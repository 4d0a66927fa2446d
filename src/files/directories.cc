#include "files/directories.h"

#include <cerrno>

#include "base/ids.h"
#include "base/text.h"

namespace cay::files {
namespace {

// How deep a removal holds one descriptor per level. What lies deeper is moved up to the top first,
// so that no tree, however deep, costs more.
constexpr int kMaxDepth = 48;
// How often directories are looked at again before a process that keeps filling them has won.
constexpr int kMaxRounds = 100'000;

class TreeRemoval {
 public:
  explicit TreeRemoval(Fd top) : top_(std::move(top)) {}

  // Empties the top directory.
  Result<> empty(const std::string& path) { return emptyDirectory(top_.get(), path, 1); }

 private:
  Result<> emptyDirectory(int dir, const std::string& path, int depth) {
    // Again as long as entries turn up: some were moved here from below, others may have been made
    // meanwhile.
    for (;;) {
      CAY_ASSIGN(const auto entries, named(sys::readDirectory(dir), path));
      if (entries.empty()) return {};
      if (++rounds_ > kMaxRounds) {
        return fail(Code::kConflict, "something keeps adding files: " + quoted(path));
      }
      for (const sys::DirEntry& entry : entries) {
        CAY_TRY(removeEntry(dir, entry.name, joinPath(path, entry.name), depth));
      }
    }
  }

  Result<> removeEntry(int dir, const std::string& name, const std::string& path, int depth) {
    const auto unlinked = sys::unlinkAt(dir, name.c_str());
    if (unlinked || unlinked.error().sys == ENOENT) return {};
    if (unlinked.error().sys != EISDIR) return failPath(unlinked.error(), path);
    if (depth == kMaxDepth) {
      const auto moved = sys::renameAt(dir, name.c_str(), top_.get(), newId("cay-removed").c_str());
      if (moved || moved.error().sys == ENOENT) return {};
      return failPath(moved.error(), path);
    }
    auto below = sys::openAt(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!below) {
      const int err = below.error().sys;
      if (err == ENOENT || err == ENOTDIR) return {};  // replaced meanwhile: the next round sees it
      return failPath(std::move(below).error(), path);
    }
    CAY_TRY(emptyDirectory(below->get(), path, depth + 1));
    const auto removed = sys::unlinkAt(dir, name.c_str(), AT_REMOVEDIR);
    if (removed || removed.error().sys == ENOENT || removed.error().sys == ENOTEMPTY ||
        removed.error().sys == ENOTDIR) {
      return {};  // not empty any more: the next round of the caller sees it
    }
    return failPath(removed.error(), path);
  }

  Fd top_;
  int rounds_ = 0;
};

}  // namespace

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

Result<> removeTree(int dir, const std::string& name, const std::string& shownPath) {
  const auto unlinked = sys::unlinkAt(dir, name.c_str());
  if (unlinked) return {};
  if (unlinked.error().sys != EISDIR) return failPath(unlinked.error(), shownPath);
  CAY_ASSIGN(Fd below,
             named(sys::openAt(dir, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW), shownPath));
  CAY_TRY(TreeRemoval(std::move(below)).empty(shownPath));
  return named(sys::unlinkAt(dir, name.c_str(), AT_REMOVEDIR), shownPath);
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
  if (recursive == Recursive::kYes) return removeTree(at.dir.get(), at.name, absolute);
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
