// The nursery's own mount namespace: nearly empty, so that copying it for a new sandbox is cheap
// and what could be found below a sandbox's root is nothing.
//
//   /s            one mount that holds all others, so that a keeper drops them with one call
//   /s/state      the folder of all sandboxes
//   /s/layers/N   directories of the host that images are made of
//   /s/dev        the device nodes that every sandbox has
//   /s/own-dev    where a keeper makes those of a sandbox that has others too
//   /s/idmapped/N where a keeper puts its own view of the layers; made as needed
//   /proc, /new   where a keeper mounts its /proc and builds its root
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"

namespace cay::isolation {

inline constexpr char kStageMounts[] = "/s";
inline constexpr char kStageState[] = "/s/state";
inline constexpr char kStageDev[] = "/s/dev";
inline constexpr char kStageOwnDev[] = "/s/own-dev";
inline constexpr char kStageIdmapped[] = "/s/idmapped";
inline constexpr char kStageProc[] = "/proc";
inline constexpr char kStageRoot[] = "/new";
inline constexpr int kMostLayers = 120;  // of one sandbox

// What a plan needs of the host, in the order of the plan.
struct Placed {
  std::vector<std::vector<std::string>> lowers;  // where on the stage, for each overlay
  std::vector<Fd> binds;                         // mounts that are attached nowhere
  std::vector<Fd> devices = {};                  // the same
};

class Stage {
 public:
  // Moves the calling process, which must have one thread, to its own mount namespace (and, in
  // unprivileged mode, to a user namespace in which it is root: `users`, if that is valid, else a
  // new one). `sandboxes`: an absolute path.
  static Result<Stage> enter(Mode mode, const std::string& sandboxes, const Fd& users);

  // Where on the stage a directory of the host is, which is put there on its first use.
  Result<std::string> layer(const std::string& path);
  // A copy of what is bound into a sandbox (binds.h).
  [[nodiscard]] Result<Fd> source(const Bind& bind) const;
  // A copy of a device node that is shown in one (devices.h).
  [[nodiscard]] Result<Fd> device(const std::string& path) const;
  // The host's /dev.
  [[nodiscard]] const Fd& devices() const { return devices_; }

 private:
  Fd hostMounts_;  // a namespace that still sees the host's file system
  Fd ownMounts_;
  Fd devices_;
  std::map<std::string, std::string> layers_;
};

}  // namespace cay::isolation
