#include "engine/local_start.h"

#include <fcntl.h>

#include "base/log.h"
#include "isolation/group_base.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kForAll = 0755;
constexpr mode_t kProgram = 0555;
// For the files of jobs that end with the hub: a million of them take longer than anybody waits.
constexpr Millis kRemovalPatience{15'000};
// What a command wrote is kept line by line; the keeper's own record of it need not be long.
constexpr sandbox::Retention kRetention{.logBytes = 64 << 20, .execs = 128, .processes = 128};

Result<> makeFolder(const std::string& path, mode_t mode) {
  auto made = sys::makeDirectoryAt(AT_FDCWD, path.c_str(), mode);
  if (!made && made.error().code != Code::kConflict) return made;
  return {};
}

// cay-host, as jobs that want to start a server by themselves find it.
Result<> makeServerFolder(const LocalOptions& options) {
  const std::string folder = options.state + "/server";
  CAY_TRY(makeFolder(folder, kForAll));
  const std::string file = folder + "/" + kServerFile;
  const std::string half = file + ".new";
  CAY_ASSIGN(const Fd from, sys::openAt(AT_FDCWD, options.cayHost.c_str(), O_RDONLY));
  {
    CAY_ASSIGN(const Fd to, sys::openAt(AT_FDCWD, half.c_str(),
                                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, kProgram));
    CAY_TRY(sys::copyContents(from.get(), to.get()));
    CAY_TRY(sys::chmodFd(to.get(), kProgram));
  }
  return sys::renameAt(AT_FDCWD, half.c_str(), AT_FDCWD, file.c_str());
}

Result<sandbox::PoolFolder> openSandboxes(JobHouse& house) {
  const LocalOptions& options = house.options;
  CAY_ASSIGN(sandbox::PoolFolder folder, sandbox::PoolFolder::open(options.state + "/sandboxes"));
  if (options.mode == isolation::Mode::kFull) {
    CAY_ASSIGN(house.lease, IdLease::take(options.leases, options.state));
    CAY_TRY(folder.fitFor(options.mode, house.lease->jobs()));
  } else {
    CAY_TRY(folder.fitFor(options.mode));
  }
  isolation::standAside();
  CAY_ASSIGN(house.nursery, sandbox::Nursery::start({.mode = options.mode,
                                                     .sandboxes = folder.sandboxesPath(),
                                                     .groupName = folder.name(),
                                                     .shape = kJobLogs,
                                                     .program = options.cayHost}));
  house.groups = isolation::LimitGroups::find(folder.name());
  house.groupsName = folder.name();
  house.images = std::make_unique<layers::ImageStore>(
      layers::ImageStore::Options{.folder = folder.imagesPath(),
                                  .roots = {},
                                  .mode = options.mode,
                                  .pulled = options.state + "/images"});
  return folder;
}

sandbox::Registry::Options registryOptions(JobHouse& house) {
  sandbox::Registry::Options out;
  out.mode = house.options.mode;
  out.shape = kJobLogs;
  out.retention = kRetention;
  out.images = house.images.get();
  out.spawnKeeper = [&house](const isolation::Plan& plan, const Fd& listener) -> Result<> {
    const Fd* network = house.networkOf(plan.id);
    if (network == nullptr || !network->valid()) {
      return fail(Code::kInternal, "the job has no network");
    }
    return house.nursery->spawn(plan, listener, *network);
  };
  out.releaseSlot = [&house](uint32_t slot) { return house.groups.release(slot); };
  return out;
}

}  // namespace

Result<> makeFolders(const LocalOptions& options) {
  for (const char* name : {"/jobs", "/images", "/volumes"}) {
    CAY_TRY(makeFolder(options.state + name, kOwnerOnly));
  }
  return makeServerFolder(options);
}

net::Task<Result<>> openHouse(JobHouse& house, std::vector<NetworkId> inUse,
                              std::function<void()> onLost) {
  const LocalOptions& options = house.options;
  CAY_CO_ASSIGN(sandbox::PoolFolder folder, openSandboxes(house));
  // The first job need not wait for it.
  auto warmUp = [&house] { return house.images->resolve(layers::kHostImage); };
  CAY_CO_TRY(co_await house.workers.run(std::move(warmUp)));
  Networks::Options networks = options.networks;
  if (networks.state.empty()) networks.state = options.state;
  networks.onLost = std::move(onLost);
  CAY_CO_ASSIGN(house.networks,
                co_await Networks::open(house.io, std::move(networks), std::move(inUse)));
  house.volumes = std::make_unique<Volumes>(options.state + "/volumes", options.state + "/server");
  house.pulls = std::make_unique<ImagePulls>(house.io, options.pullCommand);
  house.gpus.emplace(options.gpus);
  house.queue =
      std::make_unique<Queue>(Queue::Capacity{.memoryBytes = options.flavors.promisedMemory(),
                                              .gpus = options.flavors.gpus(),
                                              .starting = options.flavors.maxStarting(),
                                              .jobs = options.mostJobs});
  CAY_CO_ASSIGN(house.registry, co_await sandbox::Registry::open(house.io, std::move(folder),
                                                                 registryOptions(house)));
  co_return Result<>();
}

std::vector<std::string> weaknesses(const JobHouse& house) {
  std::vector<std::string> out = house.networks->notes();
  if (!house.groups.why().empty()) out.push_back("limits: " + house.groups.why());
  return out;
}

net::Task<> closeHouse(JobHouse& house) {
  co_await house.registry->shutdown();
  if (!co_await house.registry->cleared(kRemovalPatience)) {
    log(Level::kWarn, "files of ended jobs are not removed yet; the next start goes on with it");
  }
  if (auto down = co_await house.networks->shutdown(); !down) {
    log(Level::kError, "the networks could not be taken down", {{"error", down.error().message}});
  }
  house.groups.removeAll(house.registry->folder().fd());
}

}  // namespace cay::engine
