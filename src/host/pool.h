// Many sandboxes, each behind its own walls.
#pragma once

#include <memory>
#include <optional>

#include "host/config.h"
#include "host/disk_guard.h"
#include "host/pool_router.h"
#include "host/served.h"
#include "isolation/limit_groups.h"
#include "layers/image_store.h"
#include "net/worker_pool.h"
#include "sandbox/activity.h"
#include "sandbox/nursery.h"
#include "sandbox/registry.h"

namespace cay::host {

class Pool final : public Served {
 public:
  Pool(boost::asio::io_context& io, net::WorkerPool& workers, const Config& config);

  net::Task<Result<>> start() override;
  net::Handler& handler() override { return *router_; }
  void listening(uint16_t port) override;
  int64_t tick(int64_t nowMs) override;
  net::Task<> shutdown() override;

  // start() is only to find the walls out: one that does not stand is no error.
  void examineOnly() { examineOnly_ = true; }
  // What start() has found out.
  [[nodiscard]] const WallTable& walls() const { return services_->walls; }
  [[nodiscard]] isolation::Mode mode() const { return nursery_->mode(); }

 private:
  // In the mode that is asked for, or in the strongest that can be had.
  Result<> startNursery(const sandbox::PoolFolder& folder);
  // Fails if one does not stand that this mode promises.
  net::Task<Result<>> proveWalls();

  boost::asio::io_context& io_;
  net::WorkerPool& workers_;
  const Config& config_;
  const PoolSettings settings_;  // of whoever has started us
  bool examineOnly_ = false;
  std::unique_ptr<sandbox::Nursery> nursery_;
  isolation::LimitGroups groups_;
  std::unique_ptr<layers::ImageStore> images_;
  sandbox::Activity activity_;
  std::unique_ptr<sandbox::Registry> registry_;
  std::optional<PoolServices> services_;
  std::unique_ptr<DiskGuard> guard_;
  std::unique_ptr<PoolRouter> router_;
};

}  // namespace cay::host
