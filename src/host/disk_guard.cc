#include "host/disk_guard.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/clock.h"
#include "base/log.h"
#include "host/sandbox_usage.h"

namespace cay::host {
namespace {

constexpr int64_t kPauseMs = 2'000;         // for what was ended to be gone
constexpr uint64_t kEnough = 256ULL << 20;  // less is not what fills a disk

}  // namespace

std::optional<size_t> culpritAmong(const std::vector<DiskUser>& users, uint64_t enough) {
  const auto size = [](const DiskUser& user) { return user.bytes.value_or(UINT64_MAX); };
  const auto largest = std::ranges::max_element(users, {}, size);
  if (largest == users.end() || size(*largest) < enough) return std::nullopt;
  return largest->index;
}

void DiskGuard::tick(int64_t nowMs) {
  if (busy_ || nowMs < notBefore_ || reserve_.check(nowMs)) return;
  busy_ = true;
  boost::asio::co_spawn(io_, relieve(), boost::asio::detached);
}

net::Task<> DiskGuard::relieve() {
  const std::vector<sandbox::PooledPtr> all = registry_.list();
  std::vector<DiskUser> users;
  for (size_t i = 0; i < all.size(); ++i) {
    const sandbox::PooledPtr& pooled = all[i];
    if (pooled->sandbox.running() == 0 || pooled->record.spec->limits.diskBytes > 0) continue;
    const SandboxUsage usage = co_await workers_.run(
        [this, pooled] { return readUsage(groups_, registry_.folder(), pooled->record); });
    users.push_back({.index = i, .bytes = usage.diskBytes});
  }
  if (const auto culprit = culpritAmong(users, kEnough)) {
    log(Level::kWarn, "the disk is nearly full: commands of its largest user are ended",
        {{"sandbox", all[*culprit]->record.id}});
    all[*culprit]->sandbox.endCommands();
  }
  notBefore_ = monotonicMs() + kPauseMs;
  busy_ = false;
}

}  // namespace cay::host
