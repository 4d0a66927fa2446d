// The one place that knows how the state folder of a sandbox is laid out.
//
//   lock          held by the host that uses the folder
//   keeper.sock   where its keeper listens (keeper_protocol.h)
//   keeper.mark   which process the keeper is, once it was given away (Sandbox::handOver)
//   name          a name for what lives outside the folder, such as control groups
//   execs/<name>  output, meta data and exit record of one exec (output_log.h)
//   execs/lines/  what a job wrote, line by line (line_log.h)
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sandbox {

// A log that is there from the beginning, empty: making a file can be the dearest part of an exec.
inline constexpr char kSpareLog[] = "x-0000000000000000";
inline constexpr char kLinesFolder[] = "lines";

// Where the things of one sandbox are: below a directory that is open anyway, so that a sandbox
// needs no descriptor of its own.
struct SandboxFolder {
  int base = -1;
  std::string prefix;  // of every path in it: empty, or ends in '/'

  [[nodiscard]] std::string keeperSocket() const { return prefix + "keeper.sock"; }
  [[nodiscard]] std::string keeperMark() const { return prefix + "keeper.mark"; }
  [[nodiscard]] std::string execs() const { return prefix + "execs"; }
  [[nodiscard]] std::string log(std::string_view file) const {
    return execs().append("/").append(file);
  }
  [[nodiscard]] std::string lines() const { return log(kLinesFolder); }
};

// A folder that one host uses at a time.
struct LockedFolder {
  Fd folder;
  Fd lock;
  std::string name;  // "cay-" + 16 hex digits, the same for the folder's life

  // Makes what is missing of the path, with access as `mode` says (others may pass through or not
  // at all), and takes the lock. Fails with kConflict if another host holds it.
  static Result<LockedFolder> open(const std::string& path, mode_t mode);
};

struct StateFolder : LockedFolder {
  Fd execs;

  static Result<StateFolder> open(const std::string& path);
};

// A folder in another, made if it is missing.
Result<Fd> openFolderAt(int parent, const char* name, mode_t mode);

}  // namespace cay::sandbox
