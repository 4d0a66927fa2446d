// A counter that the kernel keeps for a control group, such as its kills for lack of memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/fd.h"

namespace cay::sandbox {

class GroupCounter {
 public:
  // Kills in the memory group that this process is in: cgroup v2 memory.events, or v1
  // memory.oom_control. Where there is none, read() is always 0.
  static GroupCounter oomKillsOfOwnGroup();
  static GroupCounter oomKills(Fd file) { return GroupCounter(std::move(file), "oom_kill "); }
  static GroupCounter refusedForks(Fd file) { return GroupCounter(std::move(file), "max "); }

  GroupCounter() = default;
  [[nodiscard]] uint64_t read() const;

 private:
  GroupCounter(Fd file, std::string_view name) : file_(std::move(file)), name_(name) {}

  Fd file_;
  std::string_view name_;  // of its line, with the space behind it
};

}  // namespace cay::sandbox
