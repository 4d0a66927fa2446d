#include "isolation/limit_groups.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

#include "isolation/cgroup_files.h"
#include "isolation/group_base.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

constexpr uint64_t kCpuPeriodUs = 100'000;
constexpr uint32_t kKeptSlots = 256;
// Memory that a group may pass on to its next owner: to look for so little costs more than it is
// worth.
constexpr uint64_t kPassedOn = 1 << 20;

std::string groupName(uint32_t slot) {
  return "s" + std::to_string(slot);
}

std::string readAt(int folder, const std::string& name) {
  const Fd file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  char text[4096];
  const auto length = sys::readSome(file.get(), text);
  return length ? std::string(text, *length) : std::string();
}

// The number behind `key`, which is either a whole line's beginning or empty for the first number.
uint64_t numberAfter(const std::string& text, std::string_view key) {
  const size_t at = key.empty() ? 0 : text.find(key);
  if (at == std::string::npos) return 0;
  uint64_t value = 0;
  std::from_chars(text.data() + at + key.size(), text.data() + text.size(), value);
  return value;
}

std::string orNone(uint64_t value, const char* none) {
  return value == 0 ? none : std::to_string(value);
}

Result<Fd> openFile(int folder, const std::string& name, int flags) {
  Fd file(::openat(folder, name.c_str(), flags | O_CLOEXEC));
  if (!file.valid()) return failSys("control group file " + name, errno);
  return file;
}

std::vector<std::string> groupsIn(const std::string& path) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir(path.c_str()), ::closedir);
  if (!listing) return out;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  }
  return out;
}

void removeGroupsIn(const std::string& path) {
  for (const std::string& group : groupsIn(path)) {
    std::string folder = path;
    (void)::rmdir(folder.append("/").append(group).c_str());
  }
}

}  // namespace

std::optional<LimitGroups::Controller> LimitGroups::findController(
    const char* controller, const std::optional<std::string>& base, const std::string& name,
    std::string& why) {
  const auto miss = [&](const std::string& reason) {
    why += (why.empty() ? "" : "; ") + std::string(controller) + ": " + reason;
    return std::nullopt;
  };
  const auto v1 = ownGroupV1(controller);
  Controller out;
  out.v2 = !v1;
  if (out.v2) {
    if (!base) return miss("no control groups are mounted");
    const auto passed = passedOn(*base);
    if (std::ranges::find(passed, controller) == passed.end()) {
      return miss("the group " + *base + " does not pass it on");
    }
  }
  out.path = (v1 ? *v1 : *base) + "/" + name;
  if (::mkdir(out.path.c_str(), 0755) != 0 && errno != EEXIST) {
    return miss(sysError("mkdir " + out.path, errno).message);
  }
  out.folder = Fd(::open(out.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out.folder.valid()) return miss(sysError("open " + out.path, errno).message);
  if (out.v2) {
    if (auto on = sys::writeFileAt(out.folder.get(), "cgroup.subtree_control",
                                   std::string("+") + controller);
        !on) {
      return miss(on.error().message);
    }
  }
  return out;
}

LimitGroups LimitGroups::find(const std::string& name) {
  LimitGroups groups;
  const auto base = groupBaseV2();
  groups.memory_ = findController("memory", base, name, groups.why_);
  groups.pids_ = findController("pids", base, name, groups.why_);
  groups.cpu_ = findController("cpu", base, name, groups.why_);
  groups.execs_ = findExecGroups(base, name);
  groups.apart_ = groups.execs_ && base != ownGroupV2();
  return groups;
}

std::optional<LimitGroups::Controller> LimitGroups::findExecGroups(
    const std::optional<std::string>& base, const std::string& name) {
  if (!base) return std::nullopt;
  Controller out{.path = *base + "/" + name, .folder = {}, .v2 = true};
  if (::mkdir(out.path.c_str(), 0755) != 0 && errno != EEXIST) return std::nullopt;
  out.folder = Fd(::open(out.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!out.folder.valid()) return std::nullopt;
  return out;
}

// Each of our folders once: several controllers may share one.
std::vector<const LimitGroups::Controller*> LimitGroups::folders() const {
  std::vector<const Controller*> out;
  for (const auto* controller : {&memory_, &pids_, &cpu_, &execs_}) {
    if (!*controller) continue;
    const auto same = [&](const Controller* other) { return other->path == (*controller)->path; };
    if (std::ranges::none_of(out, same)) out.push_back(&**controller);
  }
  return out;
}

Result<LimitGroup> LimitGroups::open(uint32_t slot, const Limits& limits) const {
  const std::string group = groupName(slot);
  LimitGroup out;
  for (const Controller* controller : folders()) {
    // Every entrance costs each command some 20 us.
    if (cpu_ && controller == &*cpu_ && !cpu_->v2 && limits.milliCpus == 0) continue;
    if (::mkdirat(controller->folder.get(), group.c_str(), 0755) != 0 && errno != EEXIST) {
      return failSys("mkdir of a control group", errno);
    }
    if (controller->v2) continue;  // commands are born into groups below this one
    CAY_ASSIGN(Fd entrance, openFile(controller->folder.get(), group + "/cgroup.procs", O_WRONLY));
    out.entrances.push_back(std::move(entrance));
  }
  if (execs_) {
    CAY_ASSIGN(out.execs, openFile(execs_->folder.get(), group, O_RDONLY | O_DIRECTORY));
    out.apart = apart_;
  }
  const auto set = [&](const std::optional<Controller>& controller, const char* file,
                       const std::string& text) -> Result<> {
    return sys::writeFileAt(controller->folder.get(), (group + "/" + file).c_str(), text);
  };
  if (memory_) {
    CAY_TRY(set(memory_, memory_->v2 ? "memory.max" : "memory.limit_in_bytes",
                orNone(limits.memoryBytes, memory_->v2 ? "max" : "-1")));
    CAY_ASSIGN(
        out.oomKills,
        openFile(memory_->folder.get(),
                 group + (memory_->v2 ? "/memory.events" : "/memory.oom_control"), O_RDONLY));
  }
  if (pids_) {
    CAY_TRY(set(pids_, "pids.max", orNone(limits.pids, "max")));
    CAY_ASSIGN(out.pidsEvents, openFile(pids_->folder.get(), group + "/pids.events", O_RDONLY));
  }
  const uint64_t quota = limits.milliCpus * kCpuPeriodUs / 1000;
  if (cpu_ && cpu_->v2) {
    CAY_TRY(set(cpu_, "cpu.max", orNone(quota, "max") + " " + std::to_string(kCpuPeriodUs)));
  } else if (cpu_ && quota > 0) {
    CAY_TRY(set(cpu_, "cpu.cfs_quota_us", std::to_string(quota)));
  }
  return out;
}

std::vector<std::string> LimitGroups::foldersOf(uint32_t slot) const {
  std::vector<std::string> out;
  for (const Controller* controller : folders()) {
    std::string folder = controller->path + "/" + groupName(slot);
    if (::access(folder.c_str(), F_OK) == 0) out.push_back(std::move(folder));
  }
  return out;
}

Result<std::vector<Fd>> LimitGroups::entrancesAside(uint32_t slot) const {
  std::vector<Fd> out;
  for (const Controller* controller : folders()) {
    std::string group = groupName(slot);
    if (::faccessat(controller->folder.get(), group.c_str(), F_OK, 0) != 0) continue;
    if (controller->v2) {
      group += std::string("/") + kAside;
      if (::mkdirat(controller->folder.get(), group.c_str(), 0755) != 0 && errno != EEXIST) {
        return failSys("mkdir of a control group", errno);
      }
    }
    CAY_ASSIGN(out.emplace_back(),
               openFile(controller->folder.get(), group + "/cgroup.procs", O_WRONLY));
  }
  return out;
}

uint64_t LimitGroups::memoryOf(const std::string& group) const {
  if (!memory_) return 0;
  const char* file = memory_->v2 ? "/memory.current" : "/memory.usage_in_bytes";
  return numberAfter(readAt(memory_->folder.get(), group + file), "");
}

GroupUsage LimitGroups::usage(uint32_t slot) const {
  const std::string group = groupName(slot);
  const auto read = [&](const std::optional<Controller>& controller, const char* file) {
    return controller ? readAt(controller->folder.get(), group + "/" + file) : std::string();
  };
  GroupUsage usage;
  usage.memoryBytes = memoryOf(group);
  usage.pids = numberAfter(read(pids_, "pids.current"), "");
  // Kept for every group of version 2, whatever controllers it has.
  usage.cpuMs = numberAfter(read(execs_, "cpu.stat"), "usage_usec ") / 1000;
  return usage;
}

// Whoever was the first to touch a page of a file system's own books is charged for it, and it
// cannot be given back before it is written. A group that is removed with it stays in the kernel.
uint64_t LimitGroups::cacheOf(const std::string& group) const {
  if (!memory_) return 0;
  return numberAfter(readAt(memory_->folder.get(), group + "/memory.stat"),
                     memory_->v2 ? "file " : "cache ");
}

bool LimitGroups::release(uint32_t slot) const {
  const std::string group = groupName(slot);
  // After a rush there would be more of them than are ever used at once again.
  const bool leaves = slot >= kKeptSlots;
  if (memoryOf(group) > (leaves ? 0 : kPassedOn)) giveBackMemory(memory_->path + "/" + group);
  if (leaves && cacheOf(group) > 0) return false;
  if (leaves) {
    for (const Controller* controller : folders()) {
      (void)::unlinkat(controller->folder.get(), group.c_str(), AT_REMOVEDIR);
    }
  }
  // This one is cheap to make, and its account of CPU time cannot be set back.
  if (execs_) {
    removeGroupsIn(execs_->path + "/" + group);
    (void)::unlinkat(execs_->folder.get(), group.c_str(), AT_REMOVEDIR);
  }
  return true;
}

bool LimitGroups::giveAllBack() const {
  bool all = true;
  for (const std::string& group : memory_ ? groupsIn(memory_->path) : std::vector<std::string>()) {
    if (memoryOf(group) > 0) giveBackMemory(memory_->path + "/" + group);
    all &= cacheOf(group) == 0;
  }
  return all;
}

void LimitGroups::removeAll(int disk) const {
  if (!giveAllBack() && disk >= 0 && ::syncfs(disk) == 0) (void)giveAllBack();
  for (const Controller* controller : folders()) {
    for (const std::string& group : groupsIn(controller->path)) {
      removeGroupsIn(controller->path + "/" + group);
      (void)::unlinkat(controller->folder.get(), group.c_str(), AT_REMOVEDIR);
    }
    (void)::rmdir(controller->path.c_str());
  }
}

}  // namespace cay::isolation
