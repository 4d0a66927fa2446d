#include "host/serve.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "host/router.h"
#include "net/await.h"
#include "net/event.h"
#include "net/server.h"
#include "net/worker_pool.h"
#include "sandbox/keeper_process.h"

namespace cay::host {
namespace {

constexpr size_t kWorkers = 4;
constexpr Millis kIdleCheckEvery{500};
constexpr Millis kDrainPatience{1'000};
constexpr int kExitFailure = 1;

using SignalSet = boost::asio::basic_signal_set<net::Executor>;
namespace asio = boost::asio;

// The soft limit before it is raised: commands get this one, since some programs break with a huge
// one.
uint64_t raiseOpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const uint64_t before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return before;
}

std::string currentFolder() {
  char path[4096];
  return ::getcwd(path, sizeof path) != nullptr ? path : "/";
}

Fd openRoot() {
  return Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

class Host {
 public:
  Host(const Config& config, std::vector<std::string> environment)
      : config_(config), environment_(std::move(environment)), activity_(monotonicMs()) {}

  int run() {
    // Before anything is started, so that no moment is left in which a signal would just kill us.
    stopSignals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      why_ = std::string("signal ") + ::sigabbrev_np(number);
      told_.notifyAll();
    });
    asio::co_spawn(io_, reapChildren(), asio::detached);
    asio::co_spawn(io_, main(), [this](const std::exception_ptr&, int code) {
      exitCode_ = code;
      io_.stop();
    });
    io_.run();
    return exitCode_;
  }

 private:
  net::Task<int> main() {
    const Result<> result = co_await start();
    if (!result) {
      std::fprintf(stderr, "cay-host: %s\n", result.error().message.c_str());
      co_return kExitFailure;
    }
    co_await untilTold();
    log(Level::kInfo, "stopping", {{"reason", why_}});
    server_->stop();
    co_await sandbox_->shutdown();
    const int64_t until = monotonicMs() + kDrainPatience.count();
    while (server_->connections() > 0 && monotonicMs() < until) co_await net::sleepFor(Millis(10));
    co_return 0;
  }

  net::Task<Result<>> start() {
    CAY_CO_ASSIGN(sandbox::StateFolder state, sandbox::StateFolder::open(config_.state));
    const uint64_t openFiles = raiseOpenFiles();
    sandbox::Sandbox::Options options;
    options.spawnKeeper = sandbox::keeperSpawner(
        {.shape = config_.logShape,
         .cgroupName = state.name,
         .noCgroups = config_.treeKill == TreeKill::kSubreaper ? "CAY_TREE_KILL says so" : "",
         .commandOpenFiles = openFiles},
        state.execs.get());
    options.shape = config_.logShape;
    options.totalLogBytes = config_.logBytesTotal;
    options.state = std::move(state);
    CAY_CO_ASSIGN(sandbox_, co_await sandbox::Sandbox::open(io_, std::move(options)));

    CAY_CO_ASSIGN(auto place, files::Place::create(openRoot(), currentFolder()));
    files_ =
        std::make_unique<FileService>(FileService{.place = std::move(place), .workers = workers_});
    router_ = std::make_unique<Router>(
        config_.token,
        SandboxServices{.exec = {.sandbox = *sandbox_,
                                 .defaults = {.env = environment_, .cwd = currentFolder()}},
                        .files = *files_,
                        .dialer = dialer_},
        activity_);
    std::vector<asio::ip::tcp::endpoint> endpoints;
    endpoints.reserve(config_.listen.size());
    for (const std::string& address : config_.listen) {
      endpoints.emplace_back(asio::ip::make_address(address), config_.port);
    }
    const net::ServerLimits limits{.maxConnections = config_.maxConnections};
    CAY_CO_ASSIGN(server_, net::Server::listen(io_, endpoints, *router_, limits, &workers_));
    router_->setOwnPort(server_->port());
    log(Level::kInfo, "listening",
        {{"address", config_.listen.front()},
         {"port", static_cast<int64_t>(server_->port())},
         {"version", CAY_VERSION},
         {"token", config_.token.empty() ? "none: loopback only" : "required"},
         {"tree_kill", sandbox_->treeMechanism()},
         {"no_cgroups", sandbox_->whyNoCgroups()},
         {"state", config_.state}});
    co_return Result<>();
  }

  net::Task<> untilTold() {
    while (why_.empty()) {
      co_await told_.wait(config_.idleTimeoutMs > 0 ? kIdleCheckEvery : net::Event::kForever);
      const int64_t quiet = activity_.quietMs(monotonicMs(), sandbox_->running());
      if (why_.empty() && config_.idleTimeoutMs > 0 && quiet >= config_.idleTimeoutMs) {
        why_ = "idle for " + std::to_string(quiet / 1000) + " s";
      }
    }
  }

  // Our own child is the keeper; as PID 1 of a container every orphan becomes ours too.
  net::Task<> reapChildren() {
    SignalSet signals(io_.get_executor(), SIGCHLD);
    while (true) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      const auto [error, number] = co_await signals.async_wait(net::kAwait);
      if (error) co_return;
    }
  }

  const Config& config_;
  std::vector<std::string> environment_;
  asio::io_context io_{1};
  SignalSet stopSignals_{io_.get_executor(), SIGTERM, SIGINT};
  std::string why_;  // why it stops
  net::Event told_;
  net::WorkerPool workers_{kWorkers};
  Activity activity_;
  std::unique_ptr<sandbox::Sandbox> sandbox_;
  std::unique_ptr<FileService> files_;
  net::LoopbackDialer dialer_;
  std::unique_ptr<Router> router_;
  std::unique_ptr<net::Server> server_;
  int exitCode_ = kExitFailure;
};

}  // namespace

int serve(const Config& config, std::vector<std::string> environment) {
  return Host(config, std::move(environment)).run();
}

}  // namespace cay::host
