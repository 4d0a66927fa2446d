// The routes of one sandbox: the same below /v1 and below /v1/sandboxes/{id}.
#pragma once

#include "base/error.h"
#include "host/call.h"
#include "host/exec_routes.h"
#include "host/file_routes.h"
#include "net/dialer.h"
#include "net/task.h"

namespace cay::host {

// A sandbox as its routes see it.
class SandboxAccess {
 public:
  virtual ~SandboxAccess() = default;

  [[nodiscard]] virtual ExecService exec() = 0;
  // Its files; asked for only by routes that need them.
  virtual net::Task<Result<FileService>> files() = 0;
  virtual net::Dialer& dialer() = 0;
  // The one port that is never proxied to, since it would be a loop; 0: none.
  [[nodiscard]] virtual uint16_t ownPort() const = 0;
};

// Answers a call whose path is below the sandbox's prefix.
net::Task<Result<>> routeSandbox(Call& call, SandboxAccess& access);

}  // namespace cay::host
