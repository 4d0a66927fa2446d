// The routes of a pool, and who may use which:
//
//   /v1/sandboxes, /v1/sandboxes/{id}/token    the host's token
//   GET /v1/sandboxes/{id}                     the host's token or the sandbox's own
//   everything else below /v1/sandboxes/{id}   the sandbox's own
//
// Whoever has no right gets 403, whether or not there is anything at the path.
#pragma once

#include <string>
#include <string_view>

#include "host/pool_routes.h"
#include "host/router.h"
#include "sandbox/activity.h"

namespace cay::host {

class PoolRouter final : public Router {
 public:
  // `compat`: the host's token opens sandboxes too.
  PoolRouter(std::string token, bool compat, PoolServices& services, sandbox::Activity& activity)
      : token_(std::move(token)), compat_(compat), services_(services), activity_(activity) {}

 protected:
  [[nodiscard]] Result<> admit(const net::RequestHead&) const override { return {}; }
  net::Task<Result<>> route(Call& call) override;

 private:
  enum class Caller { kNobody, kHost, kOwner };

  [[nodiscard]] Caller callerOf(const net::RequestHead& head, std::string_view ownToken) const;
  net::Task<Result<>> routeManagement(Call& call);
  // `call.path` is what follows the id.
  net::Task<Result<>> routeOne(Call& call, std::string_view id);
  net::Task<Result<>> routeAlive(Call& call, sandbox::PooledPtr pooled);

  const std::string token_;
  const bool compat_;
  PoolServices& services_;
  sandbox::Activity& activity_;
};

}  // namespace cay::host
