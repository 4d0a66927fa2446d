// One sandbox, which is the machine that cay-host finds itself on.
#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "host/one_sandbox.h"
#include "sandbox/keeper_process.h"

namespace cay::host {
namespace {

std::string currentFolder() {
  char path[4096];
  return ::getcwd(path, sizeof path) != nullptr ? path : "/";
}

class Dedicated final : public OneSandbox {
 public:
  Dedicated(boost::asio::io_context& io, net::WorkerPool& workers, const Config& config,
            std::vector<std::string> environment, uint64_t commandOpenFiles)
      : OneSandbox(io, workers, config, {.env = std::move(environment), .cwd = currentFolder()}),
        commandOpenFiles_(commandOpenFiles) {}

  net::Task<Result<>> start() override {
    CAY_CO_ASSIGN(state_, sandbox::StateFolder::open(config_.state));
    sandbox::Sandbox::Options options;
    options.spawnKeeper = sandbox::keeperSpawner(
        {.shape = config_.logShape,
         .cgroupName = state_.name,
         .noCgroups = config_.treeKill == TreeKill::kSubreaper ? "CAY_TREE_KILL says so" : "",
         .commandOpenFiles = commandOpenFiles_},
        state_.execs.get());
    options.shape = config_.logShape;
    options.retention.logBytes = config_.logBytesTotal;
    options.folder = {.base = state_.folder.get(), .prefix = ""};
    sandbox_ = std::make_unique<sandbox::Sandbox>(io_, std::move(options));
    sandbox_->recover();
    CAY_CO_TRY(co_await sandbox_->prepare());
    co_await sandbox_->settled();
    Fd root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    CAY_CO_ASSIGN(files_.place, files::Place::create(std::move(root), defaults_.cwd));
    co_return Result<>();
  }

  void listening(uint16_t port) override {
    port_ = port;
    log(Level::kInfo, "listening",
        {{"address", config_.listen.front()},
         {"port", int64_t{port}},
         {"version", CAY_VERSION},
         {"token", config_.token.empty() ? "none: loopback only" : "required"},
         {"tree_kill", sandbox_->treeMechanism()},
         {"no_cgroups", sandbox_->whyNoCgroups()},
         {"state", config_.state}});
  }

 private:
  net::Dialer& dialer() override { return dialer_; }
  [[nodiscard]] uint16_t ownPort() const override { return port_; }

  const uint64_t commandOpenFiles_;
  sandbox::StateFolder state_;
  net::LoopbackDialer dialer_;
  uint16_t port_ = 0;
};

}  // namespace

std::unique_ptr<Served> serveOne(boost::asio::io_context& io, net::WorkerPool& workers,
                                 const Config& config, std::vector<std::string> environment,
                                 uint64_t commandOpenFiles) {
  return std::make_unique<Dedicated>(io, workers, config, std::move(environment), commandOpenFiles);
}

}  // namespace cay::host
