// Everything that one exec has started, whatever it did to hide (setsid, forking twice): a set that
// can be signalled and ended as a whole. Two ways to hold it together:
//   cgroup     a cgroup v2 group for each exec, where such groups can be made;
//   subreaper  a small process of its own for each exec, which its orphans fall back to.
// Used by the keeper alone, from its one thread.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "sandbox/launch.h"
#include "sys/process.h"

namespace cay::sandbox {

struct LeaderEnd {
  int status = 0;  // as of waitpid
  Usage usage;
};

class ProcessTree {
 public:
  virtual ~ProcessTree() = default;

  // Starts the exec's command, the leader, in this tree. Once for each tree.
  virtual Launched start(LaunchPlan plan) = 0;
  // Sends a signal to every process of the tree that is not in this process group, each once, and
  // none to what they start when they have got it: that is how they clean up.
  virtual void signalOutside(pid_t group, int number) = 0;
  // SIGKILL for every process, also for those being forked meanwhile.
  virtual void kill() = 0;
  // Nothing of it is alive any more.
  virtual bool empty() = 0;

  // A descriptor to watch (and for which events of epoll), or -1. When it fires, call onEvent.
  [[nodiscard]] virtual int eventFd() const = 0;
  [[nodiscard]] virtual unsigned eventMask() const = 0;
  // The leader's end, if that is what has been reported.
  virtual std::optional<LeaderEnd> onEvent() = 0;
  // True if the leader is the keeper's own child, which reaps it.
  [[nodiscard]] virtual bool leaderIsOurs() const = 0;
};

class ProcessTrees {
 public:
  virtual ~ProcessTrees() = default;
  virtual Result<std::unique_ptr<ProcessTree>> make() = 0;
  // "cgroup" or "subreaper"
  [[nodiscard]] virtual std::string_view mechanism() const = 0;
};

// Groups below our own cgroup v2 group, in a folder called `name`. Fails where none can be made,
// entered or killed; what an earlier keeper left under that name is killed and removed.
Result<std::unique_ptr<ProcessTrees>> cgroupTrees(const std::string& name);
// Groups below one that is known to work.
std::unique_ptr<ProcessTrees> cgroupTreesIn(Fd group);
std::unique_ptr<ProcessTrees> subreaperTrees();

Usage usageOf(const rusage& usage, const sys::IoCounter::Counts& io);

}  // namespace cay::sandbox
