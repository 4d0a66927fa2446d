// Where keepers come from: one small process of cay-host, which knows the layers of images and the
// walls of this machine, and is copied for each sandbox by clone3. A keeper is thus
// made without an exec, shares the nursery's memory, and is never a child of a process with
// threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "isolation/plan.h"
#include "sandbox/output_log.h"

namespace cay::sandbox {

struct NurserySettings {
  isolation::Mode mode = isolation::Mode::kFull;
  std::string sandboxes;  // absolute path of the folder that holds a folder for each sandbox
  std::string groupName;  // of its control groups
  LogShape shape;
  std::string program = "/proc/self/exe";  // cay-host
  bool usersGiven = false;  // filled in: it gets the user namespace that it is to be in
};

// The host's end. If the nursery dies, the next keeper gets a new one; keepers do not depend on it.
class Nursery {
 public:
  // Completes when the nursery stands ready; fails with the reason if this mode cannot be had here.
  static Result<std::unique_ptr<Nursery>> start(NurserySettings settings);

  // Has a keeper made that takes the listener over. Whoever has connected to the listener gets
  // kHello from it, or kRefused with the reason. `network`: for Network::kGiven. Whoever enters
  // that must be in the user namespace that owns it, so if need be the nursery is renewed to be
  // there.
  Result<> spawn(const isolation::Plan& plan, const Fd& listener, const Fd& network = Fd());

  [[nodiscard]] isolation::Mode mode() const { return settings_.mode; }

 private:
  explicit Nursery(NurserySettings settings) : settings_(std::move(settings)) {}
  Result<> launch();
  Result<> standWith(const Fd& network);

  NurserySettings settings_;
  Fd users_;  // the user namespace that it is to be in; not valid: one of its own
  Fd socket_;
};

// Every program that starts nurseries begins with this: the exit code, if it is itself to be one or
// has become a keeper; nullopt if not. What a nursery was told is wiped out of its arguments, since
// sandboxes see them as those of their keeper, which is a copy.
std::optional<int> runAsNursery(int argc, char** argv);

// The settings that a host wrote into this process's arguments; nullopt if it is not to be a
// nursery.
std::optional<NurserySettings> nurseryArguments(const std::vector<std::string>& arguments);
// Serves until its host is gone. Also returns, with its exit code, in every keeper that came of it.
int runNursery(const NurserySettings& settings);

}  // namespace cay::sandbox
