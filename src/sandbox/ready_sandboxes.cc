#include "sandbox/ready_sandboxes.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

namespace cay::sandbox {

std::optional<ReadySandboxes::Kind> ReadySandboxes::Kind::of(const PoolSpec& spec) {
  const bool special = spec.limits.diskBytes > 0 || spec.network == isolation::Network::kGiven ||
                       spec.lifetimeMs > 0 || spec.stays;
  if (special) return std::nullopt;
  return Kind{.image = spec.image,
              .network = spec.network,
              .limits = spec.limits,
              .binds = spec.binds,
              .devices = spec.devices};
}

void ReadySandboxes::setMost(size_t most) {
  most_ = most;
  while (uses_.size() > most_) uses_.pop_front();
  takeSurplusAway();
}

void ReadySandboxes::used(const PoolSpec& spec, int64_t nowMs) {
  const auto kind = Kind::of(spec);
  if (most_ == 0 || !kind) return;
  uses_.push_back({.kind = *kind, .atMs = nowMs});
  if (uses_.size() > most_) uses_.pop_front();
  if (std::exchange(filling_, true)) return;
  boost::asio::co_spawn(io_, fill(), boost::asio::detached);
}

PooledPtr ReadySandboxes::take(const PoolSpec& spec) {
  const auto kind = Kind::of(spec);
  const auto fits = [&](const PooledPtr& one) {
    return kind && Kind::of(*one->record.spec) == kind && one->sandbox.hasKeeper();
  };
  const auto found = std::ranges::find_if(waiting_, fits);
  if (found == waiting_.end()) return nullptr;
  PooledPtr taken = std::move(*found);
  waiting_.erase(found);
  return taken;
}

void ReadySandboxes::tick(int64_t nowMs) {
  while (!uses_.empty() && nowMs - uses_.front().atMs >= kMemoryMs) uses_.pop_front();
  takeSurplusAway();
}

size_t ReadySandboxes::wanted(const Kind& kind) const {
  return static_cast<size_t>(std::ranges::count(uses_, kind, &Use::kind));
}

size_t ReadySandboxes::had(const Kind& kind) const {
  return static_cast<size_t>(std::ranges::count_if(
      waiting_, [&](const PooledPtr& one) { return Kind::of(*one->record.spec) == kind; }));
}

std::optional<ReadySandboxes::Kind> ReadySandboxes::lacking() const {
  for (const Use& use : uses_) {
    if (had(use.kind) < wanted(use.kind)) return use.kind;
  }
  return std::nullopt;
}

void ReadySandboxes::takeSurplusAway() {
  std::vector<PooledPtr> surplus;
  for (const PooledPtr& one : waiting_) {
    const auto kind = Kind::of(*one->record.spec);
    const auto going = static_cast<size_t>(std::ranges::count_if(
        surplus, [&](const PooledPtr& other) { return Kind::of(*other->record.spec) == kind; }));
    if (!one->sandbox.hasKeeper() || had(*kind) - going > wanted(*kind)) surplus.push_back(one);
  }
  for (const PooledPtr& one : surplus) {
    std::erase(waiting_, one);
    ways_.takeAway(one);
  }
}

// One after another: there are people waiting for what the machine does meanwhile.
net::Task<> ReadySandboxes::fill() {
  while (const auto kind = lacking()) {
    PooledPtr made = co_await ways_.make(*kind);
    if (!made) {
      uses_.clear();  // not again before somebody else has got one
      break;
    }
    waiting_.push_back(std::move(made));
  }
  filling_ = false;
  takeSurplusAway();  // there may be fewer wanted by now
}

}  // namespace cay::sandbox
