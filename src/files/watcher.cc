#include "files/watcher.h"

#include <dirent.h>

#include <cerrno>

#include "base/text.h"
#include "files/temp_file.h"

namespace cay::files {
namespace {

constexpr uint32_t kMask = IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM |
                           IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR |
                           IN_EXCL_UNLINK;
// Buffers taken in one drain(), so that a busy directory cannot hold it for ever.
constexpr int kMaxReads = 16;

std::string below(const std::string& relative, const std::string& name) {
  return relative.empty() ? name : joinPath(relative, name);
}

bool isAtOrBelow(std::string_view path, std::string_view dir) {
  return path.starts_with(dir) && (path.size() == dir.size() || path[dir.size()] == '/');
}

bool isDirectory(const sys::DirEntry& entry, int dir) {
  if (entry.type != DT_UNKNOWN) return entry.type == DT_DIR;
  const auto stat = sys::statAt(dir, entry.name.c_str());
  return stat && S_ISDIR(stat->st_mode);
}

}  // namespace

Result<std::unique_ptr<Watcher>> Watcher::open(std::shared_ptr<const Place> place,
                                               std::string_view path, Recursive recursive,
                                               size_t maxDirectories) {
  CAY_ASSIGN(const auto acting, place->act());
  CAY_ASSIGN(std::string absolute, place->absolute(path));
  CAY_ASSIGN(const Fd found, place->open(absolute, O_PATH));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(found.get()));
  auto inotify = sys::inotifyCreate();
  if (!inotify && inotify.error().sys == EMFILE) {
    return fail(Code::kExhausted, "too many watches are open (fs.inotify.max_user_instances)");
  }
  if (!inotify) return std::unexpected(std::move(inotify).error());
  std::string onlyName;
  if (!S_ISDIR(stat.st_mode)) {
    onlyName = absolute.substr(absolute.rfind('/') + 1);
    absolute = parentOf(absolute);
    recursive = Recursive::kNo;
  }
  std::unique_ptr<Watcher> watcher(new Watcher(std::move(place), *std::move(inotify),
                                               std::move(absolute), recursive, maxDirectories));
  watcher->onlyName_ = std::move(onlyName);
  CAY_TRY(watcher->scan("", nullptr));
  return watcher;
}

std::string Watcher::full(const std::string& relative) const {
  return relative.empty() ? path_ : joinPath(path_, relative);
}

// The kernel reports changes of a file that has no name yet (O_TMPFILE) under '#' and its inode
// number.
bool Watcher::isUnnamed(const std::string& relative, const std::string& name) const {
  return name.starts_with('#') && parseUint(std::string_view(name).substr(1)) &&
         !place_->open(full(relative), O_PATH | O_NOFOLLOW);
}

Result<std::vector<sys::DirEntry>> Watcher::addWatch(const std::string& relative) {
  if (watches_.size() >= maxDirectories_) {
    return fail(Code::kExhausted, "more than " + std::to_string(maxDirectories_) +
                                      " directories to watch below " + quoted(path_));
  }
  // The path itself may lead through a link; what is below is never one.
  const int follow = relative.empty() ? 0 : O_NOFOLLOW;
  CAY_ASSIGN(const Fd dir, place_->open(full(relative), O_RDONLY | O_DIRECTORY | follow));
  const auto watch = sys::inotifyAdd(inotify_.get(), dir.get(), kMask);
  if (!watch && watch.error().sys == ENOSPC) {
    return fail(Code::kExhausted, "too many directories are watched (fs.inotify.max_user_watches)");
  }
  if (!watch) return failPath(watch.error(), full(relative));
  watches_[*watch] = relative;
  if (recursive_ == Recursive::kNo) return std::vector<sys::DirEntry>();
  CAY_ASSIGN(auto entries, named(sys::readDirectory(dir.get()), full(relative)));
  for (sys::DirEntry& entry : entries) {
    if (entry.type == DT_UNKNOWN) entry.type = isDirectory(entry, dir.get()) ? DT_DIR : DT_REG;
  }
  return entries;
}

Result<> Watcher::scan(const std::string& relative, Batch* batch) {
  std::vector<std::string> todo{relative};
  while (!todo.empty()) {
    const std::string dir = std::move(todo.back());
    todo.pop_back();
    auto entries = addWatch(dir);
    if (!entries) {
      const int err = entries.error().sys;
      const bool gone = err == ENOENT || err == ENOTDIR || err == ELOOP;
      if (gone && !dir.empty()) continue;  // the kernel tells about it by itself
      return std::unexpected(std::move(entries).error());
    }
    for (const sys::DirEntry& entry : *entries) {
      std::string path = below(dir, entry.name);
      if (batch != nullptr && !isTempName(entry.name) && found_.insert(path).second) {
        emit(*batch, Change::kCreated, path);
      }
      if (entry.type == DT_DIR) todo.push_back(std::move(path));
    }
  }
  return {};
}

void Watcher::scanNew(const std::string& relative, Batch& batch) {
  batch.scanned = true;
  if (!scan(relative, &batch)) emit(batch, Change::kOverflow, relative);
}

Result<std::vector<WatchEvent>> Watcher::drain() {
  CAY_ASSIGN(const auto acting, place_->act());
  Batch batch;
  for (auto& [cookie, half] : halfMoves_) ++half.drains;
  for (int reads = 0; reads < kMaxReads && !ended_; ++reads) {
    CAY_ASSIGN(const auto events, sys::inotifyRead(inotify_.get()));
    if (events.empty()) {
      // Nothing is queued any more, so nothing that a former scan has found will be told again.
      if (!batch.scanned) found_.clear();
      break;
    }
    for (const sys::InotifyEvent& event : events) take(event, batch);
  }
  settleAfter(1, batch);
  return std::move(batch.events);
}

void Watcher::take(const sys::InotifyEvent& event, Batch& batch) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) {
    emit(batch, Change::kOverflow, "");
    if (recursive_ == Recursive::kYes) (void)scan("", nullptr);  // directories made unseen
    return;
  }
  const auto watch = watches_.find(event.watch);
  if (watch == watches_.end()) return;
  if ((event.mask & IN_IGNORED) != 0) {
    watches_.erase(watch);
    return;
  }
  if (event.name.empty()) {
    if (watch->second.empty()) takeTop(event, batch);
    return;
  }
  if (!onlyName_.empty() && event.name != onlyName_) return;
  const std::string relative = below(watch->second, event.name);
  const bool isDirectory = (event.mask & IN_ISDIR) != 0;
  if ((event.mask & IN_MOVED_TO) != 0) return takeMovedTo(relative, event, batch);
  if ((event.mask & IN_MOVED_FROM) != 0) {
    halfMoves_[event.cookie] = {.from = relative, .isDirectory = isDirectory};
    found_.erase(relative);
    return;
  }
  if (isTempName(event.name)) return;
  if ((event.mask & IN_CREATE) != 0) {
    if (found_.erase(relative) == 0) emit(batch, Change::kCreated, relative);
    if (isDirectory && recursive_ == Recursive::kYes) scanNew(relative, batch);
  } else if ((event.mask & IN_DELETE) != 0) {
    found_.erase(relative);
    emit(batch, Change::kDeleted, relative);
  } else if (!isUnnamed(relative, event.name) && batch.modified.insert(relative).second) {
    batch.events.push_back({Change::kModified, full(relative), ""});
  }
}

void Watcher::takeMovedTo(const std::string& relative, const sys::InotifyEvent& event,
                          Batch& batch) {
  const bool isDirectory = (event.mask & IN_ISDIR) != 0;
  const auto half = halfMoves_.extract(event.cookie);
  if (half.empty()) {
    if (!isTempName(event.name)) emit(batch, Change::kCreated, relative);
    if (isDirectory && recursive_ == Recursive::kYes) scanNew(relative, batch);
    return;
  }
  const std::string& from = half.mapped().from;
  if (isDirectory) renameWatches(from, relative);
  if (isTempName(from.substr(from.rfind('/') + 1))) {
    emit(batch, Change::kModified, relative);  // an upload that replaced a file
  } else {
    emit(batch, Change::kMoved, relative, from);
  }
}

void Watcher::takeTop(const sys::InotifyEvent& event, Batch& batch) {
  if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) == 0) return;
  emit(batch, Change::kDeleted, onlyName_);
  ended_ = true;
}

void Watcher::emit(Batch& batch, Change change, const std::string& relative,
                   const std::string& from) {
  batch.modified.erase(relative);
  batch.events.push_back({change, full(relative), from.empty() ? "" : full(from)});
}

std::vector<WatchEvent> Watcher::settle() {
  Batch batch;
  settleAfter(0, batch);
  return std::move(batch.events);
}

void Watcher::settleAfter(int drains, Batch& batch) {
  std::erase_if(halfMoves_, [&](const auto& item) {
    const HalfMove& half = item.second;
    if (half.drains < drains) return false;
    if (half.isDirectory) dropWatches(half.from);
    const std::string_view name = std::string_view(half.from).substr(half.from.rfind('/') + 1);
    if (!isTempName(name)) emit(batch, Change::kDeleted, half.from);
    return true;
  });
}

void Watcher::renameWatches(const std::string& from, const std::string& to) {
  for (auto& [watch, path] : watches_) {
    if (isAtOrBelow(path, from)) path.replace(0, from.size(), to);
  }
}

void Watcher::dropWatches(const std::string& relative) {
  std::erase_if(watches_, [&](const auto& watch) {
    if (!isAtOrBelow(watch.second, relative)) return false;
    sys::inotifyRemove(inotify_.get(), watch.first);
    return true;
  });
}

}  // namespace cay::files
