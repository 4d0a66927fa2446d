// The management of a pool over HTTP: /v1/sandboxes and what of /v1/sandboxes/{id} is about the
// sandbox itself. Who may ask is decided before (pool_router.h).
#pragma once

#include <memory>
#include <string_view>

#include "base/error.h"
#include "files/range_write.h"
#include "host/call.h"
#include "host/create_request.h"
#include "host/disk_reserve.h"
#include "host/wall_probe.h"
#include "isolation/limit_groups.h"
#include "net/task.h"
#include "net/worker_pool.h"
#include "sandbox/registry.h"

namespace cay::host {

struct PoolServices {
  sandbox::Registry& registry;
  net::WorkerPool& workers;
  DiskReserve reserve;
  CreateDefaults defaults;
  WallTable walls;
  const isolation::LimitGroups& groups;
  // One table for all: files of different sandboxes are different files.
  std::shared_ptr<files::BurstTable> bursts = std::make_shared<files::BurstTable>();
};

// /v1/sandboxes: POST creates, GET lists.
net::Task<Result<>> serveSandboxes(Call& call, PoolServices& services);
// GET /v1/sandboxes/{id}
net::Task<Result<>> showSandbox(Call& call, PoolServices& services, sandbox::PooledPtr pooled);
// GET /v1/sandboxes/{id}/token
net::Task<Result<>> tellToken(Call& call, const sandbox::Pooled& pooled);
// DELETE /v1/sandboxes/{id}: answers when nothing of it runs any more.
net::Task<Result<>> deleteSandbox(Call& call, PoolServices& services, sandbox::PooledPtr pooled);

// Everything about a sandbox that is no more: 200 to another DELETE, else 410 with the cause.
net::Task<Result<>> answerForGone(Call& call, std::string_view id, sandbox::Death death,
                                  bool isDelete);

}  // namespace cay::host
