// How the servers inside a pooled sandbox are reached.
//
// With the host's network a sandbox binds no TCP ports; its server for port N listens on the Unix
// socket $SBX_PROXY_DIR/N.sock. That path is the sandbox's to fill, so it is opened inside its
// root, without links anywhere, and must be a socket that belongs to it. With a network of its own,
// the keeper makes a TCP socket in there and we connect it.
#pragma once

#include "host/inside.h"
#include "net/dialer.h"
#include "net/worker_pool.h"
#include "sandbox/registry.h"

namespace cay::host {

class PooledDialer final : public net::Dialer {
 public:
  PooledDialer(const sandbox::Registry& registry, sandbox::Pooled& pooled, net::WorkerPool& workers)
      : registry_(registry), pooled_(pooled), workers_(workers), inside_(pooled.sandbox) {}

  net::Task<Result<net::Stream>> dial(uint16_t port) override;

 private:
  net::Task<Result<net::Stream>> dialUnix(uint16_t port);

  const sandbox::Registry& registry_;
  sandbox::Pooled& pooled_;
  net::WorkerPool& workers_;
  InsideDialer inside_;
};

}  // namespace cay::host
