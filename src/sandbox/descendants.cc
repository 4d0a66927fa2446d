#include "sandbox/descendants.h"

#include <dirent.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "sys/io.h"
#include "sys/process.h"

namespace cay::sandbox {
namespace {

struct Stat {
  char state = '?';
  pid_t parent = 0;
  uint64_t startTime = 0;
};

std::optional<Stat> statOf(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const auto text = sys::readFile(path.c_str(), 4096);
  if (!text) return std::nullopt;
  // "pid (name) state ppid ...": the name may hold anything, so count from the last parenthesis.
  const size_t close = text->rfind(')');
  if (close == std::string::npos || close + 4 > text->size()) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(close + 2);
  constexpr int kStateField = 3;
  constexpr int kParentField = 4;
  constexpr int kStartTimeField = 22;
  Stat stat;
  for (int field = kStateField; field <= kStartTimeField; ++field) {
    const size_t end = rest.find(' ');
    const std::string_view word = rest.substr(0, end);
    if (field == kStateField && !word.empty()) stat.state = word.front();
    if (field == kParentField) std::from_chars(word.data(), word.data() + word.size(), stat.parent);
    if (field == kStartTimeField) {
      std::from_chars(word.data(), word.data() + word.size(), stat.startTime);
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return stat;
}

}  // namespace

std::vector<ProcessRef> descendantsOf(pid_t ancestor) {
  std::unordered_map<pid_t, Stat> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::opendir("/proc"), ::closedir);
  if (!listing) return {};
  while (const dirent* entry = ::readdir(listing.get())) {
    const auto pid = parseUint(entry->d_name);
    if (!pid) continue;
    if (const auto stat = statOf(static_cast<pid_t>(*pid))) all[static_cast<pid_t>(*pid)] = *stat;
  }
  const auto descends = [&](pid_t pid) {
    // The chain is bounded in case the processes changed while they were listed.
    for (size_t steps = 0; steps <= all.size(); ++steps) {
      const auto found = all.find(pid);
      if (found == all.end()) return false;
      if (found->second.parent == ancestor) return true;
      pid = found->second.parent;
    }
    return false;
  };
  std::vector<ProcessRef> out;
  for (const auto& [pid, stat] : all) {
    if (stat.state != 'Z' && stat.state != 'X' && descends(pid))
      out.push_back({pid, stat.startTime});
  }
  return out;
}

bool signalProcess(const ProcessRef& process, int number) {
  const auto pidfd = sys::pidfdOpen(process.pid);
  if (!pidfd) return false;
  const auto now = statOf(process.pid);
  return now && now->startTime == process.startTime && sys::pidfdSignal(*pidfd, number);
}

}  // namespace cay::sandbox
