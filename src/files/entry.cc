#include "files/entry.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "files/path_text.h"

namespace cay::files {
namespace {

Entry entryOf(const Place& place, const std::string& path, std::string name,
              const sys::Stat& stat) {
  Entry entry{.name = std::move(name),
              .type = typeName(stat.st_mode),
              .size = static_cast<uint64_t>(stat.st_size),
              .mtimeMs = sys::mtimeMs(stat),
              .mode = stat.st_mode & 07777};
  if (!S_ISLNK(stat.st_mode)) return entry;
  if (const auto target = place.open(path, O_PATH)) {
    const auto behind = sys::statFd(target->get());
    if (behind && S_ISREG(behind->st_mode)) entry.size = static_cast<uint64_t>(behind->st_size);
  }
  return entry;
}

// The name that `after` stands for among `names`, which are sorted.
std::string cursor(const std::string& after, const std::vector<sys::DirEntry>& names) {
  const auto bytes = unshown(after);
  const auto byName = [](const sys::DirEntry& entry, const std::string& name) {
    return entry.name < name;
  };
  const auto at = std::lower_bound(names.begin(), names.end(), after, byName);
  return bytes && (at == names.end() || at->name != after) ? *bytes : after;
}

}  // namespace

std::string_view typeName(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return "file";
    case S_IFDIR:
      return "dir";
    case S_IFLNK:
      return "symlink";
    case S_IFIFO:
      return "fifo";
    case S_IFSOCK:
      return "socket";
    default:
      return "device";
  }
}

Result<> requireRegular(const sys::Stat& stat, std::string_view path) {
  if (S_ISREG(stat.st_mode)) return {};
  if (S_ISDIR(stat.st_mode)) return fail(Code::kConflict, "is a directory: " + quoted(path));
  return fail(Code::kConflict,
              "is a " + std::string(typeName(stat.st_mode)) + ", not a file: " + quoted(path));
}

Result<StatResult> stat(const Place& place, std::string_view path) {
  CAY_ASSIGN(const auto acting, place.act());
  CAY_ASSIGN(std::string absolute, place.absolute(path));
  CAY_ASSIGN(const Fd fd, place.open(absolute, O_PATH | O_NOFOLLOW));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(fd.get()));
  std::string name = absolute == "/" ? absolute : absolute.substr(absolute.rfind('/') + 1);
  Entry entry = entryOf(place, absolute, std::move(name), stat);
  return StatResult{std::move(absolute), std::move(entry)};
}

Result<Listing> list(const Place& place, std::string_view path, const ListOptions& options) {
  CAY_ASSIGN(const auto acting, place.act());
  CAY_ASSIGN(std::string absolute, place.absolute(path));
  CAY_ASSIGN(const Fd found, place.open(absolute, O_PATH));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(found.get()));
  if (!S_ISDIR(stat.st_mode)) return fail(Code::kConflict, "not a directory: " + quoted(absolute));
  CAY_ASSIGN(const Fd dir, place.open(absolute, O_RDONLY | O_DIRECTORY));
  CAY_ASSIGN(auto names, named(sys::readDirectory(dir.get()), absolute));
  std::ranges::sort(names, {}, &sys::DirEntry::name);
  auto next = names.begin();
  if (options.after) {
    next = std::ranges::upper_bound(names, cursor(*options.after, names), {}, &sys::DirEntry::name);
  }
  Listing listing;
  listing.path = std::move(absolute);
  for (; next != names.end(); ++next) {
    if (options.limit && listing.entries.size() >= *options.limit) {
      listing.more = true;
      break;
    }
    const auto one = sys::statAt(dir.get(), next->name.c_str());
    if (one) {
      const std::string full = joinPath(listing.path, next->name);
      listing.entries.push_back(entryOf(place, full, std::move(next->name), *one));
    } else if (one.error().sys != ENOENT) {
      return failPath(one.error(), joinPath(listing.path, next->name));
    }
  }
  return listing;
}

}  // namespace cay::files
