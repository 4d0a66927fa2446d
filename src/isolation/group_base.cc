#include "isolation/group_base.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "isolation/cgroup_files.h"
#include "sys/io.h"

namespace cay::isolation {
namespace {

constexpr std::array<std::string_view, 3> kWanted = {"memory", "pids", "cpu"};
constexpr std::string_view kOurs = "/cay-";

bool isAside(const std::string& group) {
  return group.ends_with(std::string("/") + kAside);
}

std::string parentOf(const std::string& group) {
  return group.substr(0, group.rfind('/'));
}

std::vector<std::string> wantedIn(const std::string& group, const char* file) {
  const std::string text = sys::readFile((group + "/" + file).c_str()).value_or("");
  std::vector<std::string> out;
  for (const std::string_view word : words(text)) {
    if (std::ranges::find(kWanted, word) != kWanted.end()) out.emplace_back(word);
  }
  return out;
}

bool enter(const std::string& group) {
  return sys::writeFileAt(AT_FDCWD, (group + "/cgroup.procs").c_str(), "0").has_value();
}

// All that it has, or nothing.
bool passOn(const std::string& group) {
  const auto available = wantedIn(group, "cgroup.controllers");
  std::string text;
  for (const std::string& controller : available) text += "+" + controller + " ";
  if (text.empty()) return false;
  return sys::writeFileAt(AT_FDCWD, (group + "/cgroup.subtree_control").c_str(), text).has_value();
}

}  // namespace

std::vector<std::string> passedOn(const std::string& group) {
  return wantedIn(group, "cgroup.subtree_control");
}

void standAside() {
  const auto own = ownGroupV2();
  if (!own || isAside(*own) || passOn(*own) || wantedIn(*own, "cgroup.controllers").empty()) return;
  const std::string aside = *own + "/" + kAside;
  const bool made = ::mkdir(aside.c_str(), 0755) == 0 || errno == EEXIST;
  if (!made || !enter(aside) || passOn(*own)) return;
  (void)enter(*own);
  (void)::rmdir(aside.c_str());
}

std::optional<std::string> groupBaseV2() {
  auto own = ownGroupV2();
  if (!own) return std::nullopt;
  if (isAside(*own)) return parentOf(*own);
  const auto root = rootGroupV2();
  if (!root || own->substr(root->size()).contains(kOurs)) return own;
  (void)passOn(*own);
  if (passedOn(*own).size() == kWanted.size()) return own;
  if (::access(root->c_str(), W_OK) != 0) return own;
  (void)passOn(*root);
  return passedOn(*root).size() > passedOn(*own).size() ? root : own;
}

}  // namespace cay::isolation
