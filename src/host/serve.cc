#include "host/serve.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <csignal>
#include <cstdio>

#include "base/clock.h"
#include "base/log.h"
#include "host/served.h"
#include "net/await.h"
#include "net/event.h"
#include "net/server.h"
#include "net/worker_pool.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/replace_file.h"
#include "sys/signal_name.h"

namespace cay::host {
namespace {

constexpr size_t kWorkers = 4;
constexpr Millis kTickEvery{250};
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

class Host {
 public:
  Host(const Config& config, std::vector<std::string> environment)
      : config_(config), environment_(std::move(environment)) {}

  int run() {
    // Before anything is started, so that no moment is left in which a signal would just kill us.
    stopSignals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      why_ = "signal " + std::string(sys::signalName(number));
      told_.notifyAll();
      // One that still waits for its sandbox has nothing to end.
      if (config_.attached && !server_) {
        exitCode_ = 0;
        io_.stop();
      }
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
    if (!config_.endNote.empty()) (void)sys::unlinkAt(AT_FDCWD, config_.endNote.c_str());
    const Result<> result = co_await start();
    if (!result) {
      std::fprintf(stderr, "cay-host: %s\n", result.error().message.c_str());
      co_return exitFor(result.error());
    }
    const int code = co_await untilTold();
    log(Level::kInfo, "stopping", {{"reason", why_}});
    server_->stop();
    co_await served_->shutdown();
    const int64_t until = monotonicMs() + kDrainPatience.count();
    while (server_->connections() > 0 && monotonicMs() < until) co_await net::sleepFor(Millis(10));
    co_return code;
  }

  // For whoever is not our parent, or was not there at our end.
  void noteEnd(End why, const std::string& message) {
    if (config_.endNote.empty()) return;
    const EndNote note{.why = why, .message = message};
    const auto written = sys::replaceFileAt(AT_FDCWD, config_.endNote, endNoteText(note));
    if (!written) log(Level::kError, "no end note", {{"error", written.error().message}});
  }

  int exitFor(const Error& error) {
    if (error.code != Code::kGone) return kExitFailure;
    noteEnd(End::kSandboxEnded, error.message);
    return kExitSandboxEnded;
  }

  net::Task<Result<>> start() {
    const uint64_t openFiles = raiseOpenFiles();
    if (config_.attached) {
      served_ = serveAttached(io_, workers_, config_, [this] { told_.notifyAll(); });
    } else if (config_.hostMode) {
      served_ = servePool(io_, workers_, config_);
    } else {
      served_ = serveOne(io_, workers_, config_, std::move(environment_), openFiles);
    }
    CAY_CO_TRY(co_await served_->start());
    CAY_CO_ASSIGN(server_, listen());
    served_->listening(server_->port());
    if (const Fd ready(config_.readyFd); ready.valid()) {
      // Whoever has gone away meanwhile does not need to know.
      (void)sys::writeAll(ready.get(), kReadyLine);
    }
    co_return Result<>();
  }

  Result<std::unique_ptr<net::Server>> listen() {
    const net::ServerLimits limits{.maxConnections = config_.maxConnections};
    if (config_.listenFd >= 0) {
      auto server =
          net::Server::listenOn(io_, Fd(config_.listenFd), served_->handler(), limits, &workers_);
      if (!server) return std::unexpected(std::move(server).error().wrap("--listen-fd"));
      return server;
    }
    std::vector<asio::ip::tcp::endpoint> endpoints;
    endpoints.reserve(config_.listen.size());
    for (const std::string& address : config_.listen) {
      endpoints.emplace_back(asio::ip::make_address(address), config_.port);
    }
    return net::Server::listen(io_, endpoints, served_->handler(), limits, &workers_);
  }

  // The exit code.
  net::Task<int> untilTold() {
    const bool ticks = config_.hostMode || config_.idleTimeoutMs > 0;
    const int64_t dies = config_.lifetimeMs > 0 ? started_ + config_.lifetimeMs : INT64_MAX;
    while (why_.empty()) {
      const int64_t now = monotonicMs();
      const int64_t quiet = served_->tick(now);
      if (const Result<> stands = served_->stands(); !stands) {
        why_ = stands.error().message;
        co_return exitFor(stands.error());
      }
      if (config_.idleTimeoutMs > 0 && quiet >= config_.idleTimeoutMs) {
        why_ = "idle for " + std::to_string(quiet / 1000) + " s";
        noteEnd(End::kIdle, why_);
      } else if (now >= dies) {
        why_ = "its time of " + std::to_string(config_.lifetimeMs / 1000) + " s is over";
        noteEnd(End::kLifetime, why_);
      } else {
        Millis wait = ticks ? kTickEvery : net::Event::kForever;
        if (dies != INT64_MAX) wait = std::min(wait, Millis(dies - now));
        co_await told_.wait(wait);
      }
    }
    co_return 0;
  }

  // Our own child is the keeper or the nursery; as PID 1 of a container every orphan becomes ours
  // too.
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
  const int64_t started_ = monotonicMs();
  std::string why_;  // why it stops
  net::Event told_;
  net::WorkerPool workers_{kWorkers};
  std::unique_ptr<Served> served_;
  std::unique_ptr<net::Server> server_;
  int exitCode_ = kExitFailure;
};

}  // namespace

int serve(const Config& config, std::vector<std::string> environment) {
  return Host(config, std::move(environment)).run();
}

}  // namespace cay::host
