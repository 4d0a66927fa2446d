// Limits on memory, processes and CPU by control groups: cgroup v2 controllers, or those of v1
// where the machine has them there. Every sandbox's groups are named after its slot and are kept
// for the slot's next owner: making a memory group is dear, and removing one leaves it dying for as
// long as the kernel remembers a page of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

struct GroupUsage {
  uint64_t cpuMs = 0;
  uint64_t memoryBytes = 0;
  uint64_t pids = 0;
};

// The open files of one sandbox's groups, as its keeper needs them.
struct LimitGroup {
  std::vector<Fd> entrances;  // of v1 groups: whoever writes "0" here is in
  Fd oomKills;                // has a line "oom_kill N"
  Fd pidsEvents;              // has a line "max N"
  Fd execs;                   // cgroup v2 group for the groups of its execs, where there is v2
  // That group is not below the one that the keeper is in. Whoever is in a cgroup namespace whose
  // root is the keeper's group could then start nobody there.
  bool apart = false;
};

class LimitGroups {
 public:
  // Looks for controllers below our own groups (group_base.h), in a folder called `name`, by
  // making one.
  static LimitGroups find(const std::string& name);

  [[nodiscard]] bool hasMemory() const { return memory_.has_value(); }
  [[nodiscard]] bool hasPids() const { return pids_.has_value(); }
  [[nodiscard]] bool hasCpu() const { return cpu_.has_value(); }
  [[nodiscard]] const std::string& why() const { return why_; }  // what is missing, and why

  // Makes the groups of a slot, or takes those that are there, with these limits. A limit that no
  // controller can hold is left out: the walls say so.
  [[nodiscard]] Result<LimitGroup> open(uint32_t slot, const Limits& limits) const;
  [[nodiscard]] GroupUsage usage(uint32_t slot) const;
  // The folders of a slot's groups, those that there are.
  [[nodiscard]] std::vector<std::string> foldersOf(uint32_t slot) const;
  // Whoever writes "0" into each of these is in the groups of the slot, which open() has made, and
  // can make groups with limits below them.
  [[nodiscard]] Result<std::vector<Fd>> entrancesAside(uint32_t slot) const;
  // When the last process of a slot is gone: what it left in groups and in memory is given back.
  // False if it must be tried again before somebody else has the slot.
  bool release(uint32_t slot) const;
  // Removes all groups, at the end. `disk`: a folder where those in them have written; -1: nowhere.
  // It is synced if that is needed to get their memory back.
  void removeAll(int disk = -1) const;

 private:
  struct Controller {
    std::string path;  // of our folder
    Fd folder;
    bool v2 = false;
  };
  static std::optional<Controller> findController(const char* controller,
                                                  const std::optional<std::string>& base,
                                                  const std::string& name, std::string& why);
  static std::optional<Controller> findExecGroups(const std::optional<std::string>& base,
                                                  const std::string& name);
  [[nodiscard]] std::vector<const Controller*> folders() const;
  [[nodiscard]] uint64_t memoryOf(const std::string& group) const;
  // What it holds of files.
  [[nodiscard]] uint64_t cacheOf(const std::string& group) const;
  // False if some group still holds pages of files.
  [[nodiscard]] bool giveAllBack() const;

  std::optional<Controller> memory_;
  std::optional<Controller> pids_;
  std::optional<Controller> cpu_;
  std::optional<Controller> execs_;
  bool apart_ = false;
  std::string why_;
};

}  // namespace cay::isolation
