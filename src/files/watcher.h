// Watching a directory, or one file, for changes: the bookkeeping around inotify. Blocking calls;
// one thread at a time. Whoever uses it waits until fd() is readable and then calls drain().
//
// - A directory: created, modified (content or attributes), deleted, moved for each entry; with
// kYes in all
//   directories below, also those made later, whose first entries are reported even if they were
//   made before the watch on them stood. Moved out of the tree is deleted, moved in is created.
// - One file: the same for that name.
// - Links are not followed, except by the path itself.
// - Uploads in progress (TempFile) do not show; their end shows as created or modified.
// - Events that the kernel or kMaxWatches made us miss are stated as overflow.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "files/directories.h"
#include "files/place.h"
#include "sys/inotify.h"

namespace cay::files {

enum class Change { kCreated, kModified, kDeleted, kMoved, kOverflow };

struct WatchEvent {
  Change change;
  std::string path;  // absolute bytes; of an overflow: below what events may be missing
  std::string from;  // of a move
};

class Watcher {
 public:
  static constexpr size_t kMaxWatches = 8192;

  static Result<std::unique_ptr<Watcher>> open(std::shared_ptr<const Place> place,
                                               std::string_view path, Recursive recursive,
                                               size_t maxDirectories = kMaxWatches);

  [[nodiscard]] int fd() const { return inotify_.get(); }
  // What has happened since, in order. Several changes of one file in a row are one event.
  Result<std::vector<WatchEvent>> drain();

  // A move comes as two halves. While one is missing, wait a little for more events; if none come,
  // settle() gives what the halves mean alone.
  [[nodiscard]] bool hasHalfMove() const { return !halfMoves_.empty(); }
  std::vector<WatchEvent> settle();

  // The watched directory itself is gone; nothing more will come.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  struct HalfMove {
    std::string from;  // relative
    bool isDirectory;
    int drains = 0;  // that it has waited for
  };
  // The events of one drain().
  struct Batch {
    std::vector<WatchEvent> events;
    std::set<std::string> modified;  // whose last event is "modified"
    bool scanned = false;
  };

  Watcher(std::shared_ptr<const Place> place, Fd inotify, std::string path, Recursive recursive,
          size_t maxDirectories)
      : place_(std::move(place)),
        inotify_(std::move(inotify)),
        path_(std::move(path)),
        recursive_(recursive),
        maxDirectories_(maxDirectories) {}

  void take(const sys::InotifyEvent& event, Batch& batch);
  void takeMovedTo(const std::string& relative, const sys::InotifyEvent& event, Batch& batch);
  void takeTop(const sys::InotifyEvent& event, Batch& batch);
  void emit(Batch& batch, Change change, const std::string& relative, const std::string& from = {});
  // Watches the directory and, if recursive, all below; reports what is in it to `batch`, if given.
  Result<> scan(const std::string& relative, Batch* batch);
  Result<std::vector<sys::DirEntry>> addWatch(const std::string& relative);
  void scanNew(const std::string& relative, Batch& batch);
  // Halves that have waited for `drains` drains will not be completed any more.
  void settleAfter(int drains, Batch& batch);
  void renameWatches(const std::string& from, const std::string& to);
  void dropWatches(const std::string& relative);
  [[nodiscard]] std::string full(const std::string& relative) const;
  [[nodiscard]] bool isUnnamed(const std::string& relative, const std::string& name) const;

  std::shared_ptr<const Place> place_;
  Fd inotify_;
  std::string path_;      // of the directory at the top
  std::string onlyName_;  // the one file that is watched, or empty
  Recursive recursive_;
  size_t maxDirectories_;
  std::unordered_map<int, std::string> watches_;  // relative to the top, which is ""
  std::map<uint32_t, HalfMove> halfMoves_;
  // Reported by a scan: the kernel's own report of the same may still be queued.
  std::set<std::string> found_;
  bool ended_ = false;
};

}  // namespace cay::files
