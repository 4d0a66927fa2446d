#include "host/pool.h"

#include <unistd.h>

#include <set>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "host/known_walls.h"
#include "host/pooled_access.h"
#include "isolation/group_base.h"

namespace cay::host {
namespace {

using isolation::Mode;

// Of each sandbox: there may be many, and what they keep is on our disk and in our memory.
constexpr sandbox::Retention kMostRetention{.logBytes = 64 << 20, .execs = 128, .processes = 128};

uint64_t machineMemory() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

constexpr size_t kShownReason = 200;

void logMissing(const isolation::Wall& wall, const char* of) {
  const bool isLong = wall.why.size() > kShownReason;
  log(Level::kWarn, "a wall is not held",
      {{"wall", wall.name},
       {"of", of},
       {"verdict", isolation::verdictName(wall.verdict)},
       {"why", isLong ? wall.why.substr(0, kShownReason) + "..." : wall.why},
       {"remedy", wall.remedy}});
}

// One line for each wall that is not held; what no sandbox has is told once.
void logMissing(const WallTable& walls) {
  std::set<std::string_view> told;
  for (const isolation::Wall& wall : walls.host) {
    if (wall.verdict == isolation::Verdict::kHeld) continue;
    told.insert(wall.name);
    logMissing(wall, "network host");
  }
  for (const isolation::Wall& wall : walls.none) {
    if (wall.verdict != isolation::Verdict::kHeld && !told.contains(wall.name)) {
      logMissing(wall, "network none");
    }
  }
  if (walls.limitedDisk.verdict != isolation::Verdict::kHeld) {
    logMissing(walls.limitedDisk, "disk_mb");
  }
}

}  // namespace

Pool::Pool(boost::asio::io_context& io, net::WorkerPool& workers, const Config& config)
    : io_(io),
      workers_(workers),
      config_(config),
      settings_(config.pool.value_or(PoolSettings())),
      activity_(monotonicMs()) {}

net::Task<Result<>> Pool::start() {
  const sandbox::Activity::InUse starting(activity_, monotonicMs);  // nobody can use it yet
  CAY_CO_ASSIGN(sandbox::PoolFolder folder, sandbox::PoolFolder::open(config_.state));
  isolation::standAside();
  CAY_CO_TRY(startNursery(folder));
  const Mode mode = nursery_->mode();
  CAY_CO_TRY(folder.fitFor(mode, settings_.ids));
  groups_ = isolation::LimitGroups::find(folder.name());
  images_ = std::make_unique<layers::ImageStore>(
      layers::ImageStore::Options{.folder = folder.imagesPath(),
                                  .roots = config_.images,
                                  .mode = mode,
                                  .given = settings_.image});
  // The first sandbox need not wait for the image that nearly all are made of.
  auto warmUp = [this] { return images_->resolve(layers::kHostImage); };
  CAY_CO_TRY(co_await workers_.run(std::move(warmUp)));

  sandbox::Registry::Options options;
  options.mode = mode;
  options.shape = config_.logShape;
  options.retention = kMostRetention;
  options.retention.logBytes = std::min(kMostRetention.logBytes, config_.logBytesTotal);
  options.images = images_.get();
  options.spawnKeeper = [this](const isolation::Plan& plan, const Fd& listener) {
    return nursery_->spawn(plan, listener);
  };
  options.releaseSlot = [this](uint32_t slot) { return groups_.release(slot); };
  CAY_CO_ASSIGN(registry_,
                co_await sandbox::Registry::open(io_, std::move(folder), std::move(options)));
  services_.emplace(PoolServices{
      .registry = *registry_,
      .workers = workers_,
      .reserve = DiskReserve(registry_->folder().fd()),
      .defaults = {.mode = mode,
                   .limits = defaultLimits(machineMemory()),
                   .whyNoDisks = {},
                   .env = settings_.image ? sandboxVariables(settings_.image->config.env)
                                          : std::vector<std::string>(),
                   .binds = settings_.binds,
                   .devices = settings_.devices},
      .walls = {},
      .groups = groups_});
  guard_ = std::make_unique<DiskGuard>(io_, workers_, *registry_, groups_, services_->reserve);
  router_ =
      std::make_unique<PoolRouter>(config_.token, config_.compatHostToken, *services_, activity_);
  co_return co_await proveWalls();
}

net::Task<Result<>> Pool::proveWalls() {
  const isolation::Facts facts{.memoryGroup = groups_.hasMemory(),
                               .pidsGroup = groups_.hasPids(),
                               .cpuGroup = groups_.hasCpu(),
                               .diskLimited = false,
                               .whyNoGroups = groups_.why()};
  const KnownWalls known(settings_.wallsNote, mode(), facts);
  const auto recalled = known.recall(monotonicMs());
  if (recalled) {
    services_->walls = *recalled;
  } else {
    CAY_CO_ASSIGN(services_->walls, co_await tryWalls(*registry_, facts));
  }
  for (const auto* walls : {&services_->walls.host, &services_->walls.none}) {
    for (const isolation::Wall& wall : *walls) {
      if (examineOnly_ || wall.verdict == isolation::Verdict::kHeld) continue;
      if (!isPromised(mode(), wall.name)) continue;
      co_return fail(Code::kExhausted, "the wall '" + wall.name + "' is " +
                                           std::string(isolation::verdictName(wall.verdict)) +
                                           ": " + wall.why + "; " + wall.remedy);
    }
  }
  if (!recalled) {
    if (const auto kept = known.remember(services_->walls, monotonicMs()); !kept) {
      log(Level::kWarn, "what was found out about the walls is not kept",
          {{"error", kept.error().message}});
    }
  }
  const isolation::Wall& disk = services_->walls.limitedDisk;
  if (disk.verdict != isolation::Verdict::kHeld) services_->defaults.whyNoDisks = disk.why;
  if (!examineOnly_) logMissing(services_->walls);
  // Only now: the tries need no room of their own.
  registry_->setCapacity(config_.capacity);
  registry_->setMostReady(config_.mostReady);
  co_return Result<>();
}

void Pool::listening(uint16_t port) {
  log(Level::kInfo, "listening",
      {{"address", config_.listenFd < 0 ? config_.listen.front() : ""},
       {"port", int64_t{port}},
       {"version", CAY_VERSION},
       {"token", "required"},
       {"walls", sandbox::modeName(registry_->mode())},
       {"capacity", static_cast<int64_t>(config_.capacity)},
       {"sandboxes", static_cast<int64_t>(registry_->size())},
       {"no_cgroups", groups_.why()},
       {"state", config_.state}});
}

int64_t Pool::tick(int64_t nowMs) {
  registry_->tick(nowMs);
  guard_->tick(nowMs);
  return activity_.quietMs(nowMs, registry_->size());
}

net::Task<> Pool::shutdown() {
  co_await registry_->shutdown();
  // Nothing runs any more, so nothing is to be limited; the next start makes what it needs.
  groups_.removeAll(registry_->folder().fd());
}

Result<> Pool::startNursery(const sandbox::PoolFolder& folder) {
  std::vector<Mode> modes;
  if (config_.walls) {
    modes = {*config_.walls};
  } else {
    modes = {::geteuid() == 0 ? Mode::kFull : Mode::kUnprivileged, Mode::kRestricted};
  }
  for (const Mode mode : modes) {
    auto nursery = sandbox::Nursery::start({.mode = mode,
                                            .sandboxes = folder.sandboxesPath(),
                                            .groupName = folder.name(),
                                            .shape = config_.logShape});
    if (nursery) {
      nursery_ = *std::move(nursery);
      return {};
    }
    const std::string name(sandbox::modeName(mode));
    if (mode == modes.back()) {
      return std::unexpected(
          std::move(nursery).error().wrap("no " + name + " walls can be had here"));
    }
    log(Level::kWarn, "these walls cannot be had here",
        {{"walls", name}, {"error", nursery.error().message}});
  }
  return {};
}

std::unique_ptr<Served> servePool(boost::asio::io_context& io, net::WorkerPool& workers,
                                  const Config& config) {
  return std::make_unique<Pool>(io, workers, config);
}

}  // namespace cay::host
