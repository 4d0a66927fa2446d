// The containment list: what stands around a sandbox and its commands, in the order in which it
// rises. The keeper raises what all commands share; each command enters the rest on its way to
// exec.
//
//   shared   limit groups → namespaces → own root → network → Landlock domain
//   command  limit groups → rlimits → user namespace → identity → capabilities → no_new_privs →
//            seccomp
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/limit_groups.h"
#include "isolation/plan.h"
#include "isolation/seccomp.h"
#include "isolation/stage.h"

namespace cay::isolation {

// What is made once, by the nursery, for all its sandboxes.
struct Tools {
  Mode mode = Mode::kFull;
  std::optional<Stage> stage;  // none in restricted mode
  std::string sandboxes;       // path of the folder of all sandboxes
  LimitGroups groups;
  Filter filter;

  // `users`: see Stage::enter.
  static Result<Tools> make(Mode mode, const std::string& sandboxes, const std::string& groupName,
                            const Fd& users = Fd());
  // Puts the layers of a plan on the stage, and takes what is bound in.
  Result<Placed> place(const Plan& plan);
};

// The namespaces that a sandbox's keeper is to be born into (CLONE_NEW*).
uint64_t namespacesFor(const Plan& plan);

// One sandbox to be enclosed.
struct Enclosing {
  const Plan& plan;
  const Placed& placed;
  const Fd& network;  // with Network::kGiven
  const Fd& disk;     // the block device for its files, if its disk is limited
  int logFolder;      // stays writable for the keeper
};

// What a keeper holds after the shared walls have risen.
class Inside {
 public:
  // Called by a command between its birth and exec, where it shares the keeper's memory: neither
  // allocates nor locks. Null, or the name of the step that failed, with errno.
  const char* enter() const noexcept;

  [[nodiscard]] Fd takeOomKills() { return std::move(group_.oomKills); }
  [[nodiscard]] Fd takePidsEvents() { return std::move(group_.pidsEvents); }
  // The folder for groups of execs; not valid where there are none.
  [[nodiscard]] Fd takeExecGroups() { return std::move(group_.execs); }
  // What the file routes start from: the root inside, or the home where there is no own root.
  [[nodiscard]] const Fd& files() const { return files_; }
  [[nodiscard]] bool diskLimited() const { return diskLimited_; }

 private:
  friend Result<Inside> enclose(const Tools& tools, const Enclosing& what);

  struct Rlimit {
    int resource;
    rlimit value;
  };

  Mode mode_ = Mode::kFull;
  uid_t uid_ = 0;
  LimitGroup group_;
  Fd userNamespace_;
  Fd files_;
  bool diskLimited_ = false;
  std::vector<Rlimit> rlimits_;
  sock_fprog filter_{};
};

// Raises the shared walls around the calling process, which has just been born into
// namespacesFor(plan). `tools` must live as long as the result.
Result<Inside> enclose(const Tools& tools, const Enclosing& what);

}  // namespace cay::isolation
