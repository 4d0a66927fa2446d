// A host of many sandboxes: a cay-host in the job's network and control groups, outside of walls
// itself. It makes keepers by itself; all that it starts is in the groups, where there are any.
#include <fcntl.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/job_group.h"
#include "engine/served_body.h"
#include "isolation/binds.h"
#include "sandbox/registry.h"
#include "sys/file.h"

namespace cay::engine {
namespace {

constexpr char kWallsNote[] = "/walls.json";
constexpr mode_t kPassable = 0711;
constexpr Millis kEndPatience{30'000};  // for processes that have been killed

// Where no group holds a pool together: all of a sandbox ends with its keeper. One that was being
// made when its host was killed is found too, since its socket is there before it is.
net::Task<> endKeepers(boost::asio::io_context& io, std::string pool) {
  for (const char* place : {"/sandboxes", "/trash"}) {
    const auto folder =
        sys::openAt(AT_FDCWD, (pool + place).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!folder) continue;
    const auto entries = sys::readDirectory(folder->get());
    if (!entries) continue;
    for (const sys::DirEntry& entry : *entries) {
      sandbox::Sandbox::Options options;
      options.folder = {.base = folder->get(), .prefix = entry.name + "/"};
      sandbox::Sandbox left(io, std::move(options));
      left.recover();
      co_await left.destroy("the pool is over");
    }
  }
}

class PoolBody final : public ServedBody {
 public:
  explicit PoolBody(const JobGround& ground)
      : ServedBody(ground),
        group_(ground.house.groups, ground.house.groupsName, pooled_->record.slot) {}

  net::Task<Result<>> start() override {
    CAY_CO_ASSIGN(FrontEnd::Plan made, plan());
    makeServer(std::move(made));
    CAY_CO_TRY(server_->start());
    co_return co_await awaitServer();
  }

  Result<> adopt() override {
    if (ground_.state.status.stage == Stage::kScheduling) {
      return fail(Code::kGone, "its start was not finished");
    }
    CAY_ASSIGN(FrontEnd::Plan made, plan());
    makeServer(std::move(made));
    return server_->adopt();
  }

  net::Task<> stop() override {
    if (server_) co_await server_->stop();
    co_await FrontEnd::killLeft(ground_.folder.path());
    if (inGroup()) {
      auto end = [this] { return group_.end(kEndPatience); };
      if (const auto ended = co_await ground_.house.workers.run(std::move(end)); !ended) {
        log(Level::kError, "a pool could not be ended",
            {{"job", ground_.spec.id}, {"error", ended.error().message}});
      }
    } else {
      co_await endKeepers(ground_.house.io, poolFolder());
    }
    ground_.house.registry->retire(pooled_, sandbox::Death::kKilled);
    co_await sandbox::Registry::ended(pooled_);
  }

 private:
  // An ordinary user may have none.
  [[nodiscard]] bool inGroup() const {
    return group_.holds() || ground_.house.registry->mode() == isolation::Mode::kFull;
  }
  [[nodiscard]] std::string poolFolder() const {
    return ground_.house.registry->folder().sandboxesPath() + "/" + ground_.spec.id + "/pool";
  }
  [[nodiscard]] Result<FrontEnd::Plan> plan() const {
    const JobHouse& house = ground_.house;
    if (!pooled_->image) return fail(Code::kNotFound, "its image is not there any more");
    FrontEnd::Plan out{.program = {}, .folder = {}, .startup = startup()};
    const std::string folder = poolFolder();
    auto made = sys::makeDirectoryAt(AT_FDCWD, folder.c_str(), kPassable);
    if (!made && made.error().code != Code::kConflict) {
      return std::unexpected(std::move(made).error());
    }
    out.startup.stateFolder = folder;
    host::PoolSettings& pool = out.startup.pool.emplace();
    pool.capacity = poolCapacity(ground_.spec);
    pool.mode = house.registry->mode();
    pool.image = *pooled_->image;
    pool.image->config.env = jobEnvironment(ground_.spec, pooled_->image->config);
    pool.binds = pooled_->record.spec->binds;
    pool.devices = pooled_->record.spec->devices;
    pool.wallsNote = house.options.state + kWallsNote;
    if (ground_.state.idBlock) {
      pool.ids = house.lease->pool(*ground_.state.idBlock, IdUnits::unitsFor(pool.capacity));
    }
    if (inGroup()) {
      CAY_ASSIGN(out.groups, group_.entrances(pooled_->record.spec->limits));
    }
    out.inNetwork = true;
    return out;
  }

  const JobGroup group_;
};

}  // namespace

std::unique_ptr<JobBody> makePoolBody(const JobGround& ground) {
  return std::make_unique<PoolBody>(ground);
}

}  // namespace cay::engine
