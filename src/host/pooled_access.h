// A sandbox of a pool as its routes see it: who its files belong to, what its paths mean, which
// environment its commands have. Made for one request.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "files/place.h"
#include "files/range_write.h"
#include "host/pooled_dialer.h"
#include "host/sandbox_routes.h"
#include "net/worker_pool.h"
#include "sandbox/registry.h"

namespace cay::host {

// Where a sandbox's home is, by its own paths.
std::string homeOf(const sandbox::Registry& registry, const sandbox::PoolRecord& record);

// The whole environment of its commands, before what a request adds: nothing of the host's.
std::vector<std::string> environmentOf(const sandbox::Registry& registry,
                                       const sandbox::PoolRecord& record);

// The variables of an image that its sandboxes get: all but those that say where the home is, which
// are ours to say; its programs are looked for after those of the home.
std::vector<std::string> sandboxVariables(const std::vector<std::string>& ofImage);

// Its files, seen by the rule that is asked for. In restricted mode there is only the home.
net::Task<Result<std::shared_ptr<const files::Place>>> placeOf(const sandbox::Registry& registry,
                                                               sandbox::Pooled& pooled,
                                                               sandbox::PathRule paths);

class PooledAccess final : public SandboxAccess {
 public:
  PooledAccess(const sandbox::Registry& registry, sandbox::PooledPtr pooled,
               net::WorkerPool& workers, std::shared_ptr<files::BurstTable> bursts)
      : registry_(registry),
        pooled_(std::move(pooled)),
        workers_(workers),
        bursts_(std::move(bursts)),
        dialer_(registry_, *pooled_, workers_) {}

  [[nodiscard]] ExecService exec() override;
  net::Task<Result<FileService>> files() override;
  net::Dialer& dialer() override { return dialer_; }
  [[nodiscard]] uint16_t ownPort() const override { return 0; }  // what it dials is never ours

 private:
  const sandbox::Registry& registry_;
  const sandbox::PooledPtr pooled_;
  net::WorkerPool& workers_;
  const std::shared_ptr<files::BurstTable> bursts_;
  PooledDialer dialer_;
};

}  // namespace cay::host
