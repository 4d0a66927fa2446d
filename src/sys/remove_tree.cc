#include "sys/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/text.h"
#include "sys/directory_stream.h"
#include "sys/file.h"

namespace cay::sys {
namespace {

// How many levels are open at once. A directory below them is moved up to the top first, so that no
// tree, however deep, needs more.
constexpr size_t kMaxLevels = 32;
// How long a directory is read again and again because it was not empty at the end. Whoever fills
// it may be faster than we are.
constexpr int64_t kPatienceMs = 2000;
constexpr size_t kShownFailures = 5;

int errorOf(const Result<>& result) {
  return result ? 0 : result.error().sys;
}

// The entry is gone or something else by now: whoever reads the directory again sees it.
bool changedMeanwhile(int err) {
  return err == ENOENT || err == ENOTDIR || err == ELOOP;
}

// Takes away the flags that forbid removing a file or what is in a directory.
void clearFlags(int fd) {
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) == -1) return;
  if ((flags & (FS_IMMUTABLE_FL | FS_APPEND_FL)) == 0) return;
  flags &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
  (void)::ioctl(fd, FS_IOC_SETFLAGS, &flags);
}

// The same by name, for files and directories: only they have flags, and opening anything else
// might do something.
void clearFlagsAt(int dir, const char* name) {
  const auto stat = statAt(dir, name);
  if (!stat || (!S_ISREG(stat->st_mode) && !S_ISDIR(stat->st_mode))) return;
  if (const auto fd = openAt(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)) clearFlags(fd->get());
}

// By a path of /proc, since no older call changes the mode of a name without following a link.
void openUp(int dir, const char* name) {
  if (const auto closed = openAt(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW)) {
    (void)::chmod(fdPath(closed->get()).c_str(), 0700);
  }
}

Result<Fd> openDirectory(int dir, const char* name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
  auto opened = openAt(dir, name, kFlags);
  if (opened || opened.error().sys != EACCES) return opened;
  openUp(dir, name);
  return openAt(dir, name, kFlags);
}

struct Level {
  Level(Fd fd, std::string name) : dir(std::move(fd)), entries(dir.get()), name(std::move(name)) {}

  Fd dir;
  DirectoryStream entries;
  std::string name;
  int64_t patienceEnds = 0;  // set after the first round
  bool unlocked = false;     // its mode and flags have been dealt with
  bool failed = false;       // something in it stays
};

class Removal {
 public:
  explicit Removal(int outside) : outside_(outside) {}

  Result<> run(const char* name) {
    remove(name, DT_UNKNOWN);
    while (!levels_.empty()) {
      const auto entry = levels_.back().entries.next();
      if (!entry) {
        // Reading a directory that is gone is ENOENT.
        if (!changedMeanwhile(entry.error().sys)) giveUp({}, entry.error().sys);
        leave();
      } else if (*entry) {
        remove((*entry)->name, (*entry)->type);
      } else {
        finishRound();
      }
    }
    return result();
  }

 private:
  [[nodiscard]] int here() const { return levels_.empty() ? outside_ : levels_.back().dir.get(); }

  // Removes an entry of the deepest level, or makes a directory that is not empty the next level.
  void remove(const char* name, unsigned char type) {
    const bool directory = isDirectory(name, type);
    const int err = unlink(name, directory ? AT_REMOVEDIR : 0);
    if (err == 0) {
      ++removed_;
    } else if (directory && (err == ENOTEMPTY || err == EEXIST || err == EPERM || err == EACCES)) {
      // A mount point is EBUSY, so it is never entered. One that may not be removed may still be
      // emptied.
      enter(name);
    } else if (!changedMeanwhile(err) && err != EISDIR) {
      giveUp(name, err);
    }
  }

  [[nodiscard]] bool isDirectory(const char* name, unsigned char type) const {
    if (type != DT_UNKNOWN) return type == DT_DIR;
    const auto stat = statAt(here(), name);
    return stat && S_ISDIR(stat->st_mode);
  }

  int unlink(const char* name, int flags) {
    const int err = errorOf(unlinkAt(here(), name, flags));
    if (err != EPERM && err != EACCES) return err;
    unlock(name);
    return errorOf(unlinkAt(here(), name, flags));
  }

  // Takes away what may forbid removing the entry from its directory.
  void unlock(const char* name) {
    if (!levels_.empty() && !std::exchange(levels_.back().unlocked, true)) {
      clearFlags(here());
      (void)chmodFd(here(), 0700);
    }
    clearFlagsAt(here(), name);
  }

  void enter(const char* name) {
    if (levels_.size() == kMaxLevels) return moveUp(name);
    auto opened = openDirectory(here(), name);
    if (opened) {
      levels_.emplace_back(*std::move(opened), name);
    } else if (const int err = opened.error().sys; !changedMeanwhile(err)) {
      giveUp(name, err);
    }
  }

  void moveUp(const char* name) {
    const int top = levels_.front().dir.get();
    const std::string moved = newId("cay-removed");
    int err = errorOf(renameAt(here(), name, top, moved.c_str()));
    if (err == EPERM || err == EACCES) {
      clearFlags(top);
      unlock(name);
      openUp(here(), name);  // its entry ".." is about to change
      err = errorOf(renameAt(here(), name, top, moved.c_str()));
    }
    if (err == 0) {
      ++moved_;
    } else if (!changedMeanwhile(err)) {
      giveUp(name, err);
    }
  }

  // The deepest level has been read to its end: removes it, or reads it again.
  void finishRound() {
    Level& level = levels_.back();
    const bool isTop = levels_.size() == 1;
    const int above = isTop ? outside_ : levels_[levels_.size() - 2].dir.get();
    const int err = errorOf(unlinkAt(above, level.name.c_str(), AT_REMOVEDIR));
    if (err == 0) ++removed_;
    if (err == 0 || changedMeanwhile(err)) return leave();
    if (err != ENOTEMPTY && err != EEXIST) {
      // The level above may be what forbids it.
      Level last = std::move(level);
      levels_.pop_back();
      const int again = unlink(last.name.c_str(), AT_REMOVEDIR);
      if (again != 0 && !changedMeanwhile(again)) giveUp(last.name, again);
      return;
    }
    if (level.patienceEnds == 0) level.patienceEnds = monotonicMs() + kPatienceMs;
    const bool patient = monotonicMs() < level.patienceEnds;
    // The top is also read again for what has been moved there from below, and as long as anything
    // goes although something else does not.
    const bool again = isTop ? moved_ > movedBefore_ || (patient && (!level.failed || progressed()))
                             : patient && !level.failed;
    if (!again || !level.entries.rewind()) {
      if (!level.failed) giveUp({}, err);
      return leave();
    }
    if (isTop) startOver();
  }

  [[nodiscard]] bool progressed() const { return removed_ > removedBefore_; }

  // A new round of the whole tree finds again what could not be removed.
  void startOver() {
    removedBefore_ = removed_;
    movedBefore_ = moved_;
    levels_.front().failed = false;
    failures_ = 0;
    shown_.clear();
  }

  void leave() {
    const bool failed = levels_.back().failed;
    levels_.pop_back();
    if (failed && !levels_.empty()) levels_.back().failed = true;
  }

  // `name` in the deepest level, or that level itself, stays.
  void giveUp(std::string_view name, int err) {
    if (!levels_.empty()) levels_.back().failed = true;
    if (failures_++ == 0) firstError_ = err;
    if (failures_ > kShownFailures) return;
    std::string path;
    for (const Level& level : levels_) path.append(level.name).append("/");
    path.append(name);
    if (name.empty()) path.pop_back();
    shown_.append(shown_.empty() ? "" : ", ");
    shown_.append(quoted(path)).append(" (").append(errnoText(err)).append(")");
  }

  [[nodiscard]] Result<> result() const {
    if (failures_ == 0) return {};
    Error error = sysError("remove", firstError_);
    error.message = "cannot remove " + shown_;
    if (failures_ > kShownFailures) {
      error.message += " and " + std::to_string(failures_ - kShownFailures) + " more";
    }
    return std::unexpected(std::move(error));
  }

  const int outside_;
  std::vector<Level> levels_;
  size_t removed_ = 0;
  size_t moved_ = 0;
  size_t removedBefore_ = 0;  // when the current round of the top began
  size_t movedBefore_ = 0;
  size_t failures_ = 0;
  std::string shown_;
  int firstError_ = 0;
};

}  // namespace

Result<> removeTree(int dir, const char* name) {
  return Removal(dir).run(name);
}

}  // namespace cay::sys
