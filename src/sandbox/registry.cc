#include "sandbox/registry.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/text.h"

namespace cay::sandbox {
namespace {

namespace asio = boost::asio;

constexpr int64_t kKeeperLingerMs = 10'000;  // of a keeper without work
constexpr Millis kRecoverPatience{10'000};   // for living keepers to tell what they hold
constexpr Millis kShutdownPatience{7'000};
constexpr Millis kShutdownStep{10};
constexpr int64_t kReleaseEveryMs = 10'000;
constexpr Millis kReadyPatience{10'000};  // for a keeper that nobody waits for

int64_t expiryOf(const PoolRecord& record) {
  if (record.spec->ttlMs == 0) return Pooled::kNever;
  return monotonicMs() + record.createdAtMs + record.spec->ttlMs - wallMs();
}

// What is left of it for a keeper that is made now; 0: it has no end.
int64_t lifetimeLeft(const PoolRecord& record) {
  if (record.spec->lifetimeMs == 0) return 0;
  return std::max<int64_t>(1, record.createdAtMs + record.spec->lifetimeMs - wallMs());
}

}  // namespace

Pooled::Pooled(Registry& registry, PoolRecord what, std::shared_ptr<const layers::Image> of)
    : record(std::move(what)),
      image(std::move(of)),
      sandbox(registry.io_, registry.sandboxOptions(*this)),
      activity(monotonicMs()),
      expiresAtMs(expiryOf(record)) {}

void Pooled::become(PoolRecord what) {
  record = std::move(what);
  activity = Activity(monotonicMs());
  expiresAtMs = expiryOf(record);
}

Registry::Registry(asio::io_context& io, PoolFolder folder, GoneList gone, Options options)
    : io_(io),
      folder_(std::move(folder)),
      gone_(std::move(gone)),
      options_(std::move(options)),
      slots_(folder_.userIds().slots),
      ready_(io, {.make = [this](ReadySandboxes::Kind kind) { return makeReady(std::move(kind)); },
                  .takeAway =
                      [this](const PooledPtr& pooled) {
                        takeAway(pooled, Death::kKilled, std::nullopt);
                      }}),
      upkeep_(io, *options_.images) {}

net::Task<Result<std::unique_ptr<Registry>>> Registry::open(asio::io_context& io, PoolFolder folder,
                                                            Options options) {
  CAY_CO_ASSIGN(GoneList gone, GoneList::open(folder.fd(), "gone.jsonl", wallMs()));
  std::unique_ptr<Registry> registry(
      new Registry(io, std::move(folder), std::move(gone), std::move(options)));
  CAY_CO_TRY(registry->recover());
  const int64_t until = monotonicMs() + kRecoverPatience.count();
  for (const PooledPtr& pooled : registry->list()) {
    const Millis left(std::max<int64_t>(1, until - monotonicMs()));
    if (!co_await pooled->sandbox.settled(left)) {
      log(Level::kWarn, "a keeper does not answer", {{"sandbox", pooled->record.id}});
    }
  }
  co_return registry;
}

Result<> Registry::recover() {
  CAY_ASSIGN(PoolFolder::Found found, folder_.recover());
  for (PoolRecord& record : found.records) {
    if (record.mode != options_.mode) {
      return fail(Code::kConflict, "sandbox " + record.id + " was made with " +
                                       std::string(modeName(record.mode)) +
                                       " walls, and this host has " +
                                       std::string(modeName(options_.mode)) + " ones");
    }
    // Its death was recorded, and then the host died too.
    if (gone_.find(record.id, wallMs())) {
      CAY_ASSIGN(PoolFolder::Trashed what, folder_.discard(record.id, record.slot));
      found.trash.push_back(std::move(what));
      continue;
    }
    if (!slots_.claim(record.slot)) {
      return fail(Code::kInternal, "two sandboxes have the slot of " + record.id);
    }
    auto image = options_.images->restore(record.spec->image, record.imageVersion);
    if (!image) {
      log(Level::kError, "the image of a sandbox is missing",
          {{"sandbox", record.id}, {"error", image.error().message}});
    }
    const PooledPtr pooled = enter(std::move(record), image ? shared(*image) : nullptr);
    pooled->sandbox.recover();
    join(pooled);
  }
  for (auto& [key, batch] : batches_) {
    std::ranges::sort(batch.sandboxes, {}, [](const PooledPtr& one) { return one->record.index; });
  }
  return recoverTrash(found.trash);
}

Result<> Registry::recoverTrash(const std::vector<PoolFolder::Trashed>& trash) {
  for (const PoolFolder::Trashed& what : trash) {
    if (what.slot && !slots_.claim(*what.slot)) {
      return fail(Code::kInternal, "two sandboxes have the slot of " + what.prefix);
    }
    auto sandbox = std::make_shared<Sandbox>(
        io_, sandboxOptions({.base = folder_.fd(), .prefix = what.prefix}));
    sandbox->recover();
    ++beingRemoved_;
    asio::co_spawn(io_, clear(std::move(sandbox), what), asio::detached);
  }
  return {};
}

std::shared_ptr<const layers::Image> Registry::shared(const layers::Image& image) {
  std::erase_if(images_, [](const auto& known) { return known.expired(); });
  for (const auto& known : images_) {
    if (auto same = known.lock(); same && *same == image) return same;
  }
  auto fresh = std::make_shared<const layers::Image>(image);
  images_.emplace_back(fresh);
  return fresh;
}

Sandbox::Options Registry::sandboxOptions(SandboxFolder folder) const {
  return {.folder = std::move(folder),
          .shape = options_.shape,
          .retention = options_.retention,
          .spawnKeeper = {},
          .onFirstWork = {},
          .onKeeperLost = {}};
}

Sandbox::Options Registry::sandboxOptions(const Pooled& pooled) {
  Sandbox::Options options = sandboxOptions(folder_.of(pooled.record.id));
  options.hasSpareLog = true;
  options.spawnKeeper = [this, &pooled](Fd listener) {
    return spawnKeeper(pooled, std::move(listener));
  };
  options.onFirstWork = [this, &pooled] { ready_.used(*pooled.record.spec, monotonicMs()); };
  return options;
}

PooledPtr Registry::enter(PoolRecord record, std::shared_ptr<const layers::Image> image) {
  const auto pooled = std::make_shared<Pooled>(*this, std::move(record), std::move(image));
  members_.emplace(pooled->record.id, pooled);
  return pooled;
}

Result<> Registry::spawnKeeper(const Pooled& pooled, Fd listener) const {
  if (!pooled.image) {
    return fail(Code::kExhausted, "the image of this sandbox is not there any more");
  }
  const PoolRecord& record = pooled.record;
  if (pooled.sandbox.mayHaveOrphans()) endOrphans(record.slot);
  const isolation::Plan plan{.id = record.id,
                             .mode = options_.mode,
                             .network = record.spec->network,
                             .slot = record.slot,
                             .firstUid = folder_.userIds().first(record.slot),
                             .root = pooled.image->overlays,
                             .limits = record.spec->limits,
                             .binds = record.spec->binds,
                             .devices = record.spec->devices,
                             .lifetimeMs = lifetimeLeft(record),
                             .stays = record.spec->stays};
  return options_.spawnKeeper(plan, std::move(listener));
}

void Registry::join(const PooledPtr& pooled) {
  const PoolRecord& record = pooled->record;
  if (record.key.empty()) return;
  Batch& batch = batches_[record.key];
  batch.fingerprint = record.fingerprint;
  batch.rejected = record.rejected;
  batch.sandboxes.push_back(pooled);
}

void Registry::leave(const PooledPtr& pooled) {
  const auto found = batches_.find(pooled->record.key);
  if (found == batches_.end() || std::erase(found->second.sandboxes, pooled) == 0) return;
  if (found->second.sandboxes.empty()) batches_.erase(found);
}

Result<> Registry::checkId(const CreateRequest& request) const {
  if (request.id.empty()) return {};
  if (request.count != 1 || !isGivenId(request.id)) {
    return fail(Code::kInvalid, "no sandbox can be called " + quoted(request.id));
  }
  if (members_.contains(request.id) || idsBeingMade_.contains(request.id)) {
    return fail(Code::kConflict, "there is a sandbox " + quoted(request.id) + " already");
  }
  return {};
}

net::Task<Result<Registry::Created>> Registry::create(CreateRequest request) {
  CAY_CO_TRY(checkId(request));
  while (!request.key.empty() && batches_.contains(request.key)) {
    const Batch& batch = batches_.at(request.key);
    if (batch.fingerprint != request.fingerprint) {
      co_return fail(Code::kUnprocessable,
                     "this Idempotency-Key was used for a different request before");
    }
    if (!batch.beingMade) {
      co_return Created{.sandboxes = batch.sandboxes, .rejected = batch.rejected};
    }
    co_await batchMade_.wait();
  }
  const size_t room = capacity_ - std::min(capacity_, size());
  const auto count = static_cast<uint32_t>(std::min<size_t>(request.count, room));
  if (count == 0) co_return Created{.sandboxes = {}, .rejected = request.count};
  if (!request.key.empty()) {
    Batch& batch = batches_[request.key];
    batch.fingerprint = request.fingerprint;
    batch.beingMade = true;
  }
  beingMade_ += count;
  if (!request.id.empty()) idsBeingMade_.insert(request.id);
  auto created = co_await make(request, count);
  idsBeingMade_.erase(request.id);
  beingMade_ -= count;
  if (!request.key.empty()) {
    batches_.erase(request.key);
    if (created) std::ranges::for_each(created->sandboxes, [&](const auto& one) { join(one); });
    batchMade_.notifyAll();
  }
  co_return created;
}

PoolRecord Registry::recordFor(const CreateRequest& request, SharedSpec spec, std::string id,
                               uint32_t slot) const {
  return {.id = std::move(id),
          .token = randomHex(kTokenBytes),
          .mode = options_.mode,
          .slot = slot,
          .createdAtMs = wallMs(),
          .imageVersion = {},
          .spec = std::move(spec),
          .key = request.key,
          .fingerprint = request.fingerprint,
          .index = 0,
          .rejected = 0};
}

std::optional<uint32_t> Registry::takeSlot() {
  if (const auto slot = slots_.take()) return slot;
  if (heldBack_.empty()) return std::nullopt;
  const uint32_t slot = heldBack_.front();
  heldBack_.pop_front();
  return slot;
}

// Records with an identity each, and with slots that are taken.
Result<std::vector<PoolRecord>> Registry::draft(const CreateRequest& request, uint32_t count) {
  const auto spec = std::make_shared<const PoolSpec>(request.spec);
  std::vector<PoolRecord> records;
  for (uint32_t index = 0; index < count; ++index) {
    const auto slot = takeSlot();
    if (!slot) {
      for (const PoolRecord& record : records) slots_.release(record.slot);
      return fail(Code::kExhausted, "there are no user ids left, until deleted sandboxes are gone");
    }
    PoolRecord& record = records.emplace_back(
        recordFor(request, spec, request.id.empty() ? newId(kPoolIdPrefix) : request.id, *slot));
    record.index = index;
    record.rejected = request.count - count;
  }
  return records;
}

net::Task<PooledPtr> Registry::adopt(const CreateRequest& request) {
  PooledPtr pooled = ready_.take(request.spec);
  if (!pooled) co_return nullptr;
  PoolRecord record = recordFor(request, std::make_shared<const PoolSpec>(request.spec),
                                pooled->record.id, pooled->record.slot);
  record.imageVersion = pooled->record.imageVersion;
  record.rejected = request.count - 1;
  auto work = [this, &record]() -> Result<> {
    CAY_ASSIGN(const layers::Image image, options_.images->resolve(record.spec->image));
    if (image.version != record.imageVersion) return fail(Code::kConflict, "an older image");
    return folder_.adopt(record);
  };
  const Result<> adopted = co_await makers_.run(std::move(work));
  if (!adopted) {
    takeAway(pooled, Death::kKilled, std::nullopt);
    co_return nullptr;
  }
  pooled->become(std::move(record));
  members_.emplace(pooled->record.id, pooled);
  co_return pooled;
}

net::Task<PooledPtr> Registry::makeReady(ReadySandboxes::Kind kind) {
  CreateRequest request;
  request.spec.image = std::move(kind.image);
  request.spec.network = kind.network;
  request.spec.limits = kind.limits;
  request.spec.binds = std::move(kind.binds);
  request.spec.devices = std::move(kind.devices);
  auto records = draft(request, 1);
  if (!records) co_return nullptr;
  PoolRecord& record = records->front();
  auto work = [this, &record]() -> Result<layers::Image> {
    CAY_ASSIGN(layers::Image image, options_.images->resolve(record.spec->image));
    record.imageVersion = image.version;
    CAY_TRY(folder_.makeReady(record, image.overlays.size()));
    return image;
  };
  auto image = co_await removers_.run(std::move(work));
  if (!image) {
    slots_.release(record.slot);
    co_return nullptr;
  }
  const auto pooled = std::make_shared<Pooled>(*this, std::move(record), shared(*image));
  const Result<> begun = co_await pooled->sandbox.prepare();
  if (begun && co_await pooled->sandbox.settled(kReadyPatience) && pooled->sandbox.hasKeeper()) {
    co_return pooled;
  }
  log(Level::kWarn, "a sandbox could not be made ready",
      {{"error", begun ? "its keeper did not come up" : begun.error().message}});
  takeAway(pooled, Death::kKilled, std::nullopt);
  co_return nullptr;
}

net::Task<Result<Registry::Created>> Registry::make(const CreateRequest& request, uint32_t count) {
  if (count == 1 && request.id.empty()) {
    if (PooledPtr adopted = co_await adopt(request)) {
      co_return Created{.sandboxes = {std::move(adopted)}, .rejected = request.count - count};
    }
  }
  CAY_CO_ASSIGN(std::vector<PoolRecord> records, draft(request, count));
  auto work = [this, &records, &request]() -> Result<layers::Image> {
    CAY_ASSIGN(layers::Image image, options_.images->resolve(request.spec.image));
    for (PoolRecord& record : records) record.imageVersion = image.version;
    CAY_TRY(folder_.make(records, image.overlays.size()));
    return image;
  };
  auto image = co_await makers_.run(std::move(work));
  if (!image) {
    for (const PoolRecord& record : records) slots_.release(record.slot);
    co_return std::unexpected(std::move(image).error());
  }
  asio::co_spawn(io_, refill(), asio::detached);
  Created created{.sandboxes = {}, .rejected = request.count - count};
  const auto common = shared(*image);
  for (PoolRecord& record : records) {
    created.sandboxes.push_back(enter(std::move(record), common));
  }
  co_return created;
}

PooledPtr Registry::find(std::string_view id) const {
  const auto found = members_.find(std::string(id));
  return found == members_.end() ? nullptr : found->second;
}

std::optional<GoneList::Entry> Registry::findGone(std::string_view id) const {
  if (!isId(kPoolIdPrefix, id)) return std::nullopt;
  return gone_.find(id, wallMs());
}

std::vector<PooledPtr> Registry::list() const {
  std::vector<PooledPtr> out;
  out.reserve(members_.size());
  for (const auto& [id, pooled] : members_) out.push_back(pooled);
  std::ranges::sort(out, {}, [](const PooledPtr& one) {
    return std::pair(one->record.createdAtMs, std::string_view(one->record.id));
  });
  return out;
}

net::Task<> Registry::refill() {
  if (refilling_) co_return;
  refilling_ = true;
  co_await removers_.run([this] { folder_.refill(); });
  refilling_ = false;
}

void Registry::tick(int64_t nowMs) {
  std::vector<std::pair<PooledPtr, Death>> dying;
  for (const auto& [id, pooled] : members_) {
    const int64_t quiet = pooled->activity.quietMs(nowMs, pooled->sandbox.running());
    const int64_t patience = pooled->record.spec->idleTimeoutMs;
    if (nowMs >= pooled->expiresAtMs) {
      dying.emplace_back(pooled, Death::kExpired);
    } else if (patience > 0 && quiet >= patience) {
      dying.emplace_back(pooled, Death::kEvicted);
    } else if (quiet >= kKeeperLingerMs && !pooled->record.spec->stays) {
      pooled->sandbox.endKeeper();
    }
  }
  for (const auto& [pooled, death] : dying) retire(pooled, death);
  if (!heldBack_.empty() && nowMs >= nextReleaseMs_) {
    nextReleaseMs_ = nowMs + kReleaseEveryMs;
    boost::asio::co_spawn(io_, releaseHeldBack(), boost::asio::detached);
  }
  ready_.tick(nowMs);
  upkeep_.tick(nowMs, [this] { return imageVersions(); });
}

ImageUpkeep::Versions Registry::imageVersions() const {
  ImageUpkeep::Versions versions;
  for (const auto& [id, pooled] : members_) versions.insert(pooled->record.imageVersion);
  for (const PooledPtr& pooled : ready_.waiting()) versions.insert(pooled->record.imageVersion);
  return versions;
}

net::Task<> Registry::shutdown() {
  ready_.setMost(0);
  for (const auto& [id, pooled] : members_) pooled->sandbox.endKeeper();
  const auto busy = [&] {
    return ending_ > 0 || ready_.filling() || std::ranges::any_of(members_, [](const auto& one) {
             return one.second->sandbox.hasKeeper();
           });
  };
  const int64_t until = monotonicMs() + kShutdownPatience.count();
  while (busy() && monotonicMs() < until) co_await net::sleepFor(kShutdownStep);
}

}  // namespace cay::sandbox
