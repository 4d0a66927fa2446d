#include "isolation/cgroup_files.h"

#include <fcntl.h>

#include "base/text.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

bool hasElement(std::string_view list, std::string_view wanted) {
  for (std::string_view element : split(list, ',')) {
    if (element == wanted) return true;
  }
  return false;
}

// The path of our group as /proc/self/cgroup tells it: "5:memory:/a/b", and "0::/a/b" for v2.
std::optional<std::string> ownPath(std::string_view controller) {
  const auto text = sys::readFile("/proc/self/cgroup");
  if (!text) return std::nullopt;
  for (std::string_view line : split(*text, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool match = controller.empty() ? controllers.empty() && line.starts_with("0:")
                                          : hasElement(controllers, controller);
    if (match) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

struct Mount {
  std::string root;   // which part of the tree is mounted
  std::string point;  // where
};

std::optional<Mount> findMount(std::string_view type, std::string_view controller) {
  const auto text = sys::readFile("/proc/self/mountinfo", 4 << 20);
  if (!text) return std::nullopt;
  for (std::string_view line : split(*text, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto before = split(line.substr(0, dash), ' ');
    const auto after = split(line.substr(dash + 3), ' ');
    if (before.size() < 5 || after.size() < 3 || after[0] != type) continue;
    if (!controller.empty() && !hasElement(after[2], controller)) continue;
    return Mount{std::string(before[3]), std::string(before[4])};
  }
  return std::nullopt;
}

std::optional<std::string> groupFolder(std::string_view type, std::string_view controller) {
  auto path = ownPath(controller);
  const auto mount = findMount(type, controller);
  if (!path || !mount) return std::nullopt;
  // In a container only a part of the tree may be mounted, and our path is told from its top.
  if (mount->root != "/" && path->starts_with(mount->root)) path->erase(0, mount->root.size());
  if (path->contains("/..")) return std::nullopt;
  std::string folder = mount->point + *path;
  while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
  return folder;
}

}  // namespace

std::optional<std::string> ownGroupV2() {
  return groupFolder("cgroup2", "");
}

std::optional<std::string> rootGroupV2() {
  auto mount = findMount("cgroup2", "");
  if (!mount) return std::nullopt;
  return std::move(mount->point);
}

std::optional<std::string> ownGroupV1(std::string_view controller) {
  return groupFolder("cgroup", controller);
}

void giveBackMemory(const std::string& group) {
  (void)sys::writeFileAt(AT_FDCWD, (group + "/memory.force_empty").c_str(), "0");
  // The other version wants to know how much.
  if (const auto held = sys::readFile((group + "/memory.current").c_str())) {
    (void)sys::writeFileAt(AT_FDCWD, (group + "/memory.reclaim").c_str(), *held);
  }
}

}  // namespace cay::isolation
