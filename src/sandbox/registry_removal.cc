// The end of a sandbox: its name goes at once, then its processes, its files and its user ids.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "isolation/end_user.h"
#include "sandbox/registry.h"

namespace cay::sandbox {
namespace {

// How long the readers of a dead sandbox's output may go on before its files are removed.
constexpr int64_t kReadersPatienceMs = 5'000;
constexpr Millis kReadersStep{10};
constexpr Millis kOrphansStep{5};
constexpr Millis kRemovalStep{10};

}  // namespace

void Registry::retire(const PooledPtr& pooled, Death death) {
  if (pooled->death) return;
  const PoolRecord& record = pooled->record;
  members_.erase(record.id);
  leave(pooled);
  // The death first: a host that dies here finds it in both places and knows what to do.
  const bool remembered = !isGivenId(record.id);
  auto noted = remembered ? gone_.add(record.id, record.token, death, wallMs()) : Result<>();
  if (!noted) {
    log(Level::kError, "a death could not be noted", {{"error", noted.error().message}});
  }
  std::optional<layers::Shape> reusable;
  if (pooled->image) reusable = folder_.shapeOf(*record.spec, pooled->image->overlays.size());
  takeAway(pooled, death, std::move(reusable));
}

void Registry::takeAway(const PooledPtr& pooled, Death death,
                        std::optional<layers::Shape> reusable) {
  pooled->death = death;
  ++ending_;
  const PoolRecord& record = pooled->record;
  std::optional<PoolFolder::Trashed> what;
  if (auto moved = folder_.discard(record.id, record.slot)) {
    what = std::move(*moved);
    pooled->sandbox.moved(what->prefix);
    what->shape = std::move(reusable);
  } else {
    // It is swept at the next start; till then its slot stays taken.
    log(Level::kError, "a sandbox could not be taken away",
        {{"sandbox", record.id}, {"error", moved.error().message}});
  }
  ++beingRemoved_;
  boost::asio::co_spawn(io_, bury(pooled, std::move(what)), boost::asio::detached);
}

net::Task<> Registry::bury(PooledPtr pooled, std::optional<PoolFolder::Trashed> what) {
  co_await pooled->sandbox.destroy(goneText(pooled->record.id, *pooled->death));
  endOrphans(pooled->record.slot);
  pooled->ended = true;
  pooled->changed.notifyAll();
  --ending_;
  const int64_t until = monotonicMs() + kReadersPatienceMs;
  while (pooled->activity.inUse() && monotonicMs() < until) co_await net::sleepFor(kReadersStep);
  if (what) co_await removeFiles(*std::move(what));
  --beingRemoved_;
}

net::Task<> Registry::clear(std::shared_ptr<Sandbox> trashed, PoolFolder::Trashed what) {
  co_await trashed->destroy("deleted");
  if (what.slot) endOrphans(*what.slot);
  co_await removeFiles(std::move(what));
  --beingRemoved_;
}

std::optional<uint32_t> Registry::uidToEnd(uint32_t slot) const {
  const UserIds& ids = folder_.userIds();
  if (options_.mode != isolation::Mode::kRestricted || ids.isOwn()) return std::nullopt;
  return ids.first(slot);
}

void Registry::endOrphans(uint32_t slot) const {
  const auto uid = uidToEnd(slot);
  const auto ended = uid ? isolation::endAllOf(*uid) : Result<>();
  if (!ended) {
    log(Level::kError, "processes could not be ended", {{"error", ended.error().message}});
  }
}

void Registry::awaitNobody(uint32_t slot) const {
  const auto uid = uidToEnd(slot);
  while (uid && isolation::anyLeftOf(*uid)) {
    std::this_thread::sleep_for(kOrphansStep);
    endOrphans(slot);
  }
}

net::Task<> Registry::removeFiles(PoolFolder::Trashed what) {
  auto work = [this, &what]() -> Result<> {
    if (what.slot) awaitNobody(*what.slot);
    return folder_.remove(what);
  };
  const Result<> removed = co_await removers_.run(std::move(work));
  if (!removed) {
    log(Level::kError, "the files of a sandbox could not be removed",
        {{"error", removed.error().message}});
  } else if (what.slot) {
    co_await releaseSlot(*what.slot);
  }
}

net::Task<> Registry::releaseSlot(uint32_t slot) {
  auto work = [this, slot] { return !options_.releaseSlot || options_.releaseSlot(slot); };
  if (co_await removers_.run(std::move(work))) {
    slots_.release(slot);
  } else {
    heldBack_.push_back(slot);
  }
}

// One after another: those that wait may be needed.
net::Task<> Registry::releaseHeldBack() {
  for (size_t left = heldBack_.size(); left > 0 && !heldBack_.empty(); --left) {
    const uint32_t slot = heldBack_.front();
    heldBack_.pop_front();
    co_await releaseSlot(slot);
  }
}

net::Task<> Registry::ended(PooledPtr pooled) {
  while (!pooled->ended) co_await pooled->changed.wait();
}

net::Task<bool> Registry::cleared(Millis limit) {
  const int64_t until = monotonicMs() + limit.count();
  while (beingRemoved_ > 0 && monotonicMs() < until) co_await net::sleepFor(kRemovalStep);
  co_return beingRemoved_ == 0;
}

}  // namespace cay::sandbox
