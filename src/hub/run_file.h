// run.json: where the hub of a state folder can be reached, for the other verbs of `cay`. It stays
// after the hub's end, as what the next one will probably say; whether one runs is told by which
// process wrote it. Blocking.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "hub/options.h"
#include "hub/paths.h"
#include "sandbox/paths.h"

namespace cay::hub {

struct RunInfo {
  std::string api = "http://127.0.0.1:" + std::to_string(kPort);
  uint16_t tlsPort = kTlsPort;
  std::string domain = kDomain;
  bool ownCertificate = false;  // the operator's: the private CA has no part in it
  bool operator==(const RunInfo&) const = default;
};

// The right to be the hub of a state folder.
class RunFile {
 public:
  // Makes the folder if it is missing. kConflict, naming the process, if it has a hub already.
  static Result<RunFile> claim(const Paths& paths);

  // To be said once clients can come.
  Result<> write(const RunInfo& info) const;
  // For what lives outside of the folder; the same for its life.
  [[nodiscard]] const std::string& name() const { return state_.name; }

 private:
  explicit RunFile(sandbox::LockedFolder state) : state_(std::move(state)) {}

  sandbox::LockedFolder state_;
};

struct LastRun {
  RunInfo info;
  pid_t pid = 0;
  bool runs = false;  // still
};
// nullopt if there was none yet, or if nobody can read what it wrote.
std::optional<LastRun> readRunFile(const Paths& paths);

}  // namespace cay::hub
