#include "layers/mask.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <ranges>
#include <set>
#include <thread>

#include "base/fd.h"
#include "layers/whiteout.h"
#include "sys/directory_stream.h"
#include "sys/file.h"

namespace cay::layers {
namespace {

// So many wait for the disk together when nothing is in memory yet, as after a reboot.
constexpr size_t kThreads = 8;

bool isOpenToAll(mode_t mode) {
  if (S_ISDIR(mode)) return (mode & (S_IROTH | S_IXOTH)) == (S_IROTH | S_IXOTH);
  return S_ISREG(mode) && (mode & S_IROTH) != 0;
}

class Scan {
 public:
  explicit Scan(int tree) : tree_(tree), folders_{""} {}

  std::vector<std::string> run() {
    std::array<std::thread, kThreads - 1> others;
    for (std::thread& other : others) other = std::thread([this] { work(); });
    work();
    for (std::thread& other : others) other.join();
    std::ranges::sort(closed_);
    return std::move(closed_);
  }

 private:
  struct Found {
    std::vector<std::string> folders;
    std::vector<std::string> closed;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !folders_.empty() || busy_ == 0; });
      if (folders_.empty()) return;
      const std::string folder = std::move(folders_.back());
      folders_.pop_back();
      ++busy_;
      lock.unlock();
      Found found = look(folder);
      lock.lock();
      --busy_;
      std::ranges::move(found.folders, std::back_inserter(folders_));
      std::ranges::move(found.closed, std::back_inserter(closed_));
      if (busy_ == 0 || !found.folders.empty()) changed_.notify_all();
    }
  }

  [[nodiscard]] Found look(const std::string& folder) const {
    const std::string prefix = folder.empty() ? "" : folder + "/";
    const auto dir = sys::openAt(tree_, folder.empty() ? "." : folder.c_str(),
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!dir) return dir.error().sys == ENOENT ? Found() : Found{{}, {folder}};
    Found found;
    sys::DirectoryStream entries(dir->get());
    for (;;) {
      const auto entry = entries.next();
      if (!entry) return Found{{}, {folder}};
      if (!*entry) return found;
      if ((*entry)->type == DT_LNK) continue;
      const auto stat = sys::statAt(dir->get(), (*entry)->name);
      if (!stat && stat.error().sys == ENOENT) continue;
      if (stat && S_ISLNK(stat->st_mode)) continue;
      if (!stat || !isOpenToAll(stat->st_mode)) {
        found.closed.push_back(prefix + (*entry)->name);
      } else if (S_ISDIR(stat->st_mode)) {
        found.folders.push_back(prefix + (*entry)->name);
      }
    }
  }

  const int tree_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> folders_;  // still to be looked at
  size_t busy_ = 0;                   // threads that may still find folders
  std::vector<std::string> closed_;
};

// A folder of the mask is seen in place of the layer's own.
Result<> copyAttributes(int tree, const char* path, int folder) {
  const auto stat = sys::statAt(tree, path);
  if (!stat) return {};  // gone meanwhile
  CAY_TRY(sys::chownFd(folder, stat->st_uid, stat->st_gid));
  CAY_TRY(sys::chmodFd(folder, stat->st_mode & 07777));
  return sys::setMtimeFd(folder, stat->st_mtim);
}

}  // namespace

Result<std::vector<std::string>> findClosed(int tree) {
  std::vector<std::string> closed = Scan(tree).run();
  if (!closed.empty() && closed.front().empty()) {
    return fail(Code::kInternal, "the layer cannot be read");
  }
  return closed;
}

Result<> buildMask(int tree, const std::vector<std::string>& closed, int mask) {
  std::set<std::string> folders;
  for (const std::string& path : closed) {
    for (size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
      const auto [folder, isNew] = folders.insert(path.substr(0, end));
      if (isNew) CAY_TRY(sys::makeDirectoryAt(mask, folder->c_str(), 0700));
    }
    CAY_TRY(makeWhiteout(mask, path.c_str()));
  }
  // Last, since every entry changes the time of its folder; from the deepest up for the same
  // reason.
  for (const std::string& path : std::views::reverse(folders)) {
    CAY_ASSIGN(const Fd folder, sys::openAt(mask, path.c_str(), O_RDONLY | O_DIRECTORY));
    CAY_TRY(copyAttributes(tree, path.c_str(), folder.get()));
  }
  return copyAttributes(tree, ".", mask);
}

}  // namespace cay::layers
