#include "traces.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "base/text.h"
#include "machine.h"
#include "sys/io.h"

namespace cay::bench {
namespace {

namespace fs = std::filesystem;

constexpr char kGroups[] = "/sys/fs/cgroup";
constexpr size_t kWholeFile = 16 << 20;

std::string contents(const std::string& path) {
  auto text = sys::readFile(path.c_str(), kWholeFile);
  if (!text) throw std::runtime_error(path + ": " + text.error().message);
  return *std::move(text);
}

double entriesIn(const std::string& path) {
  return static_cast<double>(std::distance(fs::directory_iterator(path), {}));
}

double mountNamespaces() {
  std::set<std::string> found;
  for (const pid_t pid : allProcesses()) {
    std::error_code gone;
    const auto space = fs::read_symlink("/proc/" + std::to_string(pid) + "/ns/mnt", gone);
    if (!gone) found.insert(space);
  }
  return static_cast<double>(found.size());
}

double loopDevices() {
  return static_cast<double>(std::ranges::count_if(
      fs::directory_iterator("/sys/block"),
      [](const fs::directory_entry& device) { return fs::exists(device.path() / "loop"); }));
}

// Calls `visit` with every control group below `path`; they come and go meanwhile.
template <typename Visit>
void visitGroups(const fs::path& path, const Visit& visit) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(path, gone)) {
    if (entry.is_symlink(gone) || !entry.is_directory(gone)) continue;
    visit(entry.path());
    visitGroups(entry.path(), visit);
  }
}

// Removed memory groups that the kernel has not let go of: v1 counts them all, v2 the dying ones.
double dyingGroups() {
  double dying = 0;
  if (fs::exists(std::string(kGroups) + "/memory")) {
    double living = 1;
    visitGroups(std::string(kGroups) + "/memory", [&](const fs::path&) { ++living; });
    // memory <hierarchy> <groups> <enabled>
    const std::string table = contents("/proc/cgroups");
    const std::string line = table.substr(table.find("\nmemory\t") + 8);
    dying += std::max(std::stod(line.substr(line.find('\t'))) - living, 0.0);
  }
  for (const char* v2 : {"", "/unified"}) {
    const std::string statistics = std::string(kGroups) + v2 + "/cgroup.stat";
    if (fs::exists(statistics)) dying += numberIn(statistics, "nr_dying_descendants ");
  }
  return dying;
}

// Of a folder, without what is in those entries of it.
double diskBytes(const fs::path& folder, const std::set<std::string>& without = {}) {
  double sum = 0;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != end(entry); ++entry) {
    if (entry.depth() == 0 && without.contains(entry->path().filename())) {
      entry.disable_recursion_pending();
      continue;
    }
    struct stat status;
    constexpr double kBlock = 512;
    if (::lstat(entry->path().c_str(), &status) == 0) {
      sum += static_cast<double>(status.st_blocks) * kBlock;
    }
  }
  return sum;
}

double largestIn(const fs::path& folder) {
  double largest = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    largest = std::max(largest, diskBytes(entry.path()));
  }
  return largest;
}

double groupsNamed(std::string_view name) {
  double count = 0;
  visitGroups(kGroups, [&](const fs::path& group) {
    if (group.native().contains(name)) ++count;
  });
  return count;
}

}  // namespace

Traces tracesOnMachine() {
  Traces traces;
  const std::string mounts = contents("/proc/self/mounts");
  traces["mounts"] = static_cast<double>(std::ranges::count(mounts, '\n'));
  traces["mount_namespaces"] = mountNamespaces();
  traces["loop_devices"] = loopDevices();
  traces["dying_groups"] = dyingGroups();
  for (const char* kind : {"mnt_cache", "pid_namespace", "user_namespace", "net_namespace"}) {
    traces[std::string("kernel_") + kind] = numberIn("/proc/slabinfo", std::string(kind) + " ");
  }
  return traces;
}

Traces tracesOf(const PoolHost& host) {
  Traces traces;
  const std::string state = host.process().state();
  traces["processes"] = static_cast<double>(processesOf(host.program()).size());
  traces["groups"] = groupsNamed(trim(contents(state + "/name")));
  // The dead of the last hour are remembered, and a bounded number of folders is kept for the next
  // sandboxes.
  traces["disk_bytes"] = diskBytes(state, {"gone.jsonl", "spares"});
  traces["spares"] = entriesIn(state + "/spares");
  traces["largest_spare_bytes"] = largestIn(state + "/spares");
  if (const pid_t pid = host.process().pid(); pid != 0) {
    const std::string process = "/proc/" + std::to_string(pid);
    traces["descriptors"] = entriesIn(process + "/fd");
    traces["threads"] = entriesIn(process + "/task");
    traces["resident_bytes"] = residentBytes(pid);
  }
  return traces;
}

}  // namespace cay::bench
