// Keeps the reserve of the disk: where it is touched, the commands of the sandbox that has filled
// the disk are ended, before the others notice. For sandboxes without a disk limit of their own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>

#include "host/disk_reserve.h"
#include "isolation/limit_groups.h"
#include "net/task.h"
#include "net/worker_pool.h"
#include "sandbox/registry.h"

namespace cay::host {

class DiskGuard {
 public:
  // All must outlive the guard, and the guard the loop's last task.
  DiskGuard(boost::asio::io_context& io, net::WorkerPool& workers, sandbox::Registry& registry,
            const isolation::LimitGroups& groups, DiskReserve& reserve)
      : io_(io), workers_(workers), registry_(registry), groups_(groups), reserve_(reserve) {}

  // To be called a few times a second.
  void tick(int64_t nowMs);

 private:
  net::Task<> relieve();

  boost::asio::io_context& io_;
  net::WorkerPool& workers_;
  sandbox::Registry& registry_;
  const isolation::LimitGroups& groups_;
  DiskReserve& reserve_;
  bool busy_ = false;
  int64_t notBefore_ = 0;
};

// Which of them is to blame: the largest, if it holds enough to matter.
struct DiskUser {
  size_t index = 0;
  // Nothing if there are too many files to count, which counts as much.
  std::optional<uint64_t> bytes;
};
std::optional<size_t> culpritAmong(const std::vector<DiskUser>& users, uint64_t enough);

}  // namespace cay::host
