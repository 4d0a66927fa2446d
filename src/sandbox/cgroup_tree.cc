// Process trees held together by cgroup v2 groups. Groups are kept and used again when they are
// empty, since making and removing one for each exec would cost more than entering it.
#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "isolation/cgroup_files.h"
#include "sandbox/process_tree.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr size_t kSpareGroups = 32;

struct Group {
  std::string name;  // below the trees' folder
  Fd folder;
  Fd events;  // cgroup.events
  // Once cgroup.kill has been written, Linux kills whatever is born into the group later (it
  // compares kill counts with the parent's group), so that a killed group is never used again.
  bool killed = false;
};

bool populated(const Group& group) {
  char text[256];
  const auto length = sys::preadSome(group.events.get(), text, 0);
  // What cannot be read is taken for occupied: the group is then not used again.
  return !length || !std::string_view(text, *length).contains("populated 0");
}

std::vector<pid_t> members(int folder) {
  std::vector<pid_t> out;
  const Fd file(::openat(folder, "cgroup.procs", O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return out;
  std::string text;
  char piece[4096];
  while (const auto count = sys::readSome(file.get(), piece)) {
    if (*count == 0) break;
    text.append(piece, *count);
  }
  const char* at = text.data();
  const char* end = text.data() + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, error] = std::from_chars(at, end, pid);
    if (error != std::errc()) break;
    out.push_back(pid);
    at = next + 1;
  }
  return out;
}

class CgroupTrees;

class CgroupTree : public ProcessTree {
 public:
  CgroupTree(CgroupTrees& owner, Group group) : owner_(owner), group_(std::move(group)) {}
  ~CgroupTree() override;
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  Launched start(LaunchPlan plan) override {
    plan.intoCgroup = group_.folder.get();
    return launch(plan);
  }

  void signalOutside(pid_t group, int number) override {
    for (const pid_t pid : members(group_.folder.get())) {
      if (::getpgid(pid) != group) signalMember(pid, number);
    }
  }

  void kill() override {
    group_.killed = true;
    (void)sys::writeFileAt(group_.folder.get(), "cgroup.kill", "1");
  }
  // Once empty it stays so: the leader was its first process, and nothing enters from outside.
  bool empty() override {
    empty_ = empty_ || !populated(group_);
    return empty_;
  }
  [[nodiscard]] int eventFd() const override { return group_.events.get(); }
  [[nodiscard]] unsigned eventMask() const override { return EPOLLPRI; }
  std::optional<LeaderEnd> onEvent() override { return std::nullopt; }
  [[nodiscard]] bool leaderIsOurs() const override { return true; }

 private:
  void signalMember(pid_t pid, int number) const {
    const auto pidfd = sys::pidfdOpen(pid);
    if (!pidfd) return;
    // The number may have gone to another process between the listing and the opening.
    const auto where = sys::readFile(("/proc/" + std::to_string(pid) + "/cgroup").c_str());
    if (where && where->contains("/" + group_.name + "\n")) (void)sys::pidfdSignal(*pidfd, number);
  }

  CgroupTrees& owner_;
  Group group_;
  bool empty_ = false;
};

class CgroupTrees : public ProcessTrees {
 public:
  explicit CgroupTrees(std::string path, Fd folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  ~CgroupTrees() override {
    for (const Group& group : spare_) remove(group);
    if (!path_.empty()) (void)::rmdir(path_.c_str());
  }
  CgroupTrees(const CgroupTrees&) = delete;
  CgroupTrees& operator=(const CgroupTrees&) = delete;

  Result<std::unique_ptr<ProcessTree>> make() override {
    if (!spare_.empty()) {
      Group group = std::move(spare_.back());
      spare_.pop_back();
      return std::make_unique<CgroupTree>(*this, std::move(group));
    }
    CAY_ASSIGN(Group group, newGroup());
    return std::make_unique<CgroupTree>(*this, std::move(group));
  }

  [[nodiscard]] std::string_view mechanism() const override { return "cgroup"; }

  void giveBack(Group group, bool empty) {
    if (spare_.size() < kSpareGroups && !group.killed && empty) {
      spare_.push_back(std::move(group));
    } else {
      remove(group);
    }
  }

  // Tries once every step that execs will need, so that a mechanism that does not work is not
  // chosen.
  Result<> prove() {
    CAY_ASSIGN(Group group, newGroup());
    Result<> verdict;
    const auto born = sys::cloneVfork(
        {.child = [](void*) -> int { ::_exit(0); }, .intoCgroup = group.folder.get()});
    if (!born) {
      verdict = std::unexpected(born.error());
    } else {
      siginfo_t info{};
      (void)::waitid(P_PID, static_cast<id_t>(born->pid), &info, WEXITED);
      group.killed = true;
      if (!sys::writeFileAt(group.folder.get(), "cgroup.kill", "1")) {
        verdict = fail(Code::kInternal, "cgroup.kill cannot be written");
      }
    }
    giveBack(std::move(group), /*empty=*/true);
    return verdict;
  }

 private:
  Result<Group> newGroup() {
    Group group;
    group.name = newId("x");
    if (::mkdirat(folder_.get(), group.name.c_str(), 0755) != 0) {
      return failSys("mkdir of a control group", errno);
    }
    group.folder =
        Fd(::openat(folder_.get(), group.name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (group.folder.valid()) {
      group.events = Fd(::openat(group.folder.get(), "cgroup.events", O_RDONLY | O_CLOEXEC));
    }
    if (!group.events.valid()) {
      const int error = errno;
      remove(group);
      return failSys("open of a control group", error);
    }
    return group;
  }

  void remove(const Group& group) {
    (void)::unlinkat(folder_.get(), group.name.c_str(), AT_REMOVEDIR);
  }

  std::string path_;  // to be removed at the end; empty: not ours to remove
  Fd folder_;
  std::vector<Group> spare_;
};

CgroupTree::~CgroupTree() {
  owner_.giveBack(std::move(group_), empty_);
}

// Ends and removes what an earlier keeper left behind. A group goes only when its last process is
// gone, so this tries for a while; what stays is harmless but untidy.
void sweep(const std::string& path) {
  constexpr int kTries = 200;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(path.c_str()), ::closedir);
    if (!listing) return;
    bool left = false;
    while (const dirent* entry = ::readdir(listing.get())) {
      if (!isId("x", entry->d_name)) continue;
      const std::string group = path + "/" + entry->d_name;
      if (::rmdir(group.c_str()) == 0) continue;
      left = true;
      const Fd folder(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (folder.valid()) (void)sys::writeFileAt(folder.get(), "cgroup.kill", "1");
    }
    if (!left) break;
    ::usleep(10'000);
  }
  (void)::rmdir(path.c_str());
}

}  // namespace

Result<std::unique_ptr<ProcessTrees>> cgroupTrees(const std::string& name) {
  const auto own = isolation::ownGroupV2();
  if (!own) return fail(Code::kInternal, "no cgroup v2 tree is mounted");
  const std::string path = *own + "/" + name;
  sweep(path);
  if (::mkdir(path.c_str(), 0755) != 0) return failSys("mkdir " + path, errno);
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return failSys("open " + path, errno);
  auto trees = std::make_unique<CgroupTrees>(path, std::move(folder));
  CAY_TRY(trees->prove());
  return trees;
}

std::unique_ptr<ProcessTrees> cgroupTreesIn(Fd group) {
  return std::make_unique<CgroupTrees>("", std::move(group));
}

}  // namespace cay::sandbox
