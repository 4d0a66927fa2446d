// The one place that knows how the state folder of a sandbox is laid out.
//
//   lock          held by the host that uses the folder
//   keeper.sock   where its keeper listens (keeper_protocol.h)
//   name          a name for what lives outside the folder, such as control groups
//   execs/<name>  output, meta data and exit record of one exec (output_log.h)
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sandbox {

struct StateFolder {
  Fd folder;
  Fd execs;
  Fd lock;
  std::string name;  // "cay-" + 16 hex digits, the same for the folder's life

  // Makes what is missing, with access for the owner alone, and takes the lock. Fails with
  // kConflict if another host holds it.
  static Result<StateFolder> open(const std::string& path);
};

}  // namespace cay::sandbox
