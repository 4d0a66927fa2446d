#include "engine/job_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "isolation/cgroup_files.h"
#include "sys/io.h"
#include "sys/process.h"

namespace cay::engine {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kStep{5};
constexpr size_t kMostListed = 1 << 20;

// Deepest first.
std::vector<std::string> groupsBelow(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) out.push_back(at->path());
  }
  return {out.rbegin(), out.rend()};
}

}  // namespace

Result<std::vector<Fd>> JobGroup::entrances(const isolation::Limits& limits) const {
  if (!holds()) {
    return fail(Code::kExhausted, "its processes cannot be held together: " + groups_.why());
  }
  CAY_TRY(groups_.open(slot_, limits));
  return groups_.entrancesAside(slot_);
}

bool JobGroup::killAllIn(const std::string& folder) const {
  const auto text = sys::readFile((folder + "/cgroup.procs").c_str(), kMostListed);
  bool any = false;
  for (const std::string_view word : words(text ? *text : std::string_view())) {
    const auto pid = parseUint(word);
    if (!pid || *pid == 0) continue;
    any = true;
    const auto process = sys::pidfdOpen(static_cast<pid_t>(*pid));
    // Looked at after it was opened: the number may have become somebody else's.
    const auto groups = sys::readFile(("/proc/" + std::string(word) + "/cgroup").c_str());
    const std::string ours = "/" + name_ + "/s" + std::to_string(slot_);
    const bool isOurs = groups && (groups->contains(ours + "\n") || groups->contains(ours + "/"));
    if (process && isOurs) (void)sys::pidfdSignal(*process, SIGKILL);
  }
  return any;
}

Result<> JobGroup::end(Millis patience) const {
  const auto all = groups_.foldersOf(slot_);
  const int64_t until = monotonicMs() + patience.count();
  const auto killAll = [&] {
    bool any = false;
    for (const std::string& folder : all) {
      any |= killAllIn(folder);
      for (const std::string& below : groupsBelow(folder)) any |= killAllIn(below);
    }
    return any;
  };
  while (killAll()) {
    if (monotonicMs() >= until) {
      return fail(Code::kTimeout, "processes of slot " + std::to_string(slot_) + " do not die");
    }
    std::this_thread::sleep_for(kStep);
  }
  for (const std::string& folder : all) {
    for (const std::string& below : groupsBelow(folder)) {
      isolation::giveBackMemory(below);
      (void)::rmdir(below.c_str());
    }
  }
  return {};
}

}  // namespace cay::engine
