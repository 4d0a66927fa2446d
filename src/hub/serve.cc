#include "hub/serve.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/co_spawn.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/local_engine.h"
#include "engine/machine.h"
#include "engine/usable_mode.h"
#include "hub/ca.h"
#include "hub/certificate_upkeep.h"
#include "hub/desk.h"
#include "hub/first_start.h"
#include "hub/paths.h"
#include "hub/run_file.h"
#include "hub/schema.h"
#include "hub/store.h"
#include "net/await.h"
#include "net/event.h"
#include "sys/signal_name.h"

namespace cay::hub {
namespace {

namespace asio = boost::asio;
using SignalSet = asio::basic_signal_set<net::Executor>;

constexpr int kExitFailure = 1;
constexpr size_t kWorkers = 4;
constexpr Millis kSettlePatience{5'000};

void raiseOpenFiles() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

class Hub {
 public:
  explicit Hub(const ServeOptions& options) : options_(options), paths_{options.state} {}

  int run() {
    // Before anything is started, so that no moment is left in which a signal would just kill us.
    stopSignals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      why_ = "signal " + std::string(sys::signalName(number));
      told_.notifyAll();
    });
    asio::co_spawn(io_, main(), [this](const std::exception_ptr&, int code) {
      exitCode_ = code;
      io_.stop();
    });
    io_.run();
    return exitCode_;
  }

 private:
  using Jobs = engine::Engine::Jobs;

  net::Task<int> main() {
    if (const auto started = co_await start(); !started) {
      (void)std::fprintf(stderr, "cay serve: %s\n", started.error().message.c_str());
      if (engine_) co_await engine_->shutdown(Jobs::kKeep);
      co_return kExitFailure;
    }
    while (why_.empty()) co_await told_.wait(net::Event::kForever);
    log(Level::kInfo, "stopping", {{"reason", why_}});
    co_await desk_->close();
    co_await engine_->shutdown(options_.endJobs ? Jobs::kEnd : Jobs::kKeep);
    if (!co_await desk_->jobs().settled(kSettlePatience)) {
      log(Level::kWarn, "not everything could be stored; the next start looks at the jobs again");
    }
    co_return 0;
  }

  net::Task<Result<>> start() {
    raiseOpenFiles();
    CAY_CO_ASSIGN(mode_, engine::usableMode());
    CAY_CO_ASSIGN(run_, RunFile::claim(paths_));
    {
      CAY_CO_ASSIGN(Database database, openHubDatabase(paths_.database()));
      CAY_CO_TRY(makeFirstTokens(database, paths_, machineUser(), wallMs()));
      tellLostTokens(database);
    }
    std::string bundle;
    CAY_CO_TRY(prepareCertificates(bundle));
    outbound_ = std::make_unique<Outbound>(usableProxy());
    CAY_CO_ASSIGN(store_, co_await Store::open(paths_.database()));
    CAY_CO_TRY(makeEngine());
    CAY_CO_ASSIGN(desk_, Desk::make({.io = io_,
                                     .options = options_,
                                     .workers = workers_,
                                     .store = *store_,
                                     .engine = *engine_,
                                     .certificates = *certificates_,
                                     .outbound = *outbound_,
                                     .bundle = std::move(bundle),
                                     .bucketFolder = paths_.volumes() + "/buckets"}));
    CAY_CO_TRY(co_await desk_->restore());
    for (const std::string& note : engine_->notes()) log(Level::kWarn, note);
    CAY_CO_TRY(desk_->open());
    CAY_CO_TRY(tellReady());
    co_return Result<>();
  }

  // One that we cannot speak to is told of and left aside: most jobs need nobody out there.
  static std::optional<PreviousProxy> usableProxy() {
    auto proxy = previousProxy(::getenv);
    if (proxy) return *std::move(proxy);
    log(Level::kWarn, "the proxy of the environment is not used", {{"why", proxy.error().message}});
    return std::nullopt;
  }

  void tellLostTokens(Database& database) {
    for (const Role role : {Role::kAdmin, Role::kUser, Role::kProxy}) {
      const auto token = tokenInFile(database, paths_, role, wallMs());
      if (!token) log(Level::kWarn, token.error().message);
    }
  }

  Result<> prepareCertificates(std::string& bundle) {
    CertificateSource source;
    if (options_.tlsCert.empty()) {
      CAY_ASSIGN(Ca ca, Ca::open(paths_.ca(), options_.domain, wallMs()));
      CAY_ASSIGN(bundle, ca.bundle());
      source = fromCa(std::move(ca));
    } else {
      source = fromFiles(options_.tlsCert, options_.tlsKey);
    }
    CAY_ASSIGN(certificates_, CertificateUpkeep::open(std::move(source), workers_, wallMs()));
    return {};
  }

  Result<> makeEngine() {
    const std::string flavors = options_.flavors.empty() ? paths_.flavors() : options_.flavors;
    engine::LocalOptions options;
    options.state = paths_.state;
    options.cayHost = options_.cayHost;
    std::error_code ignored;
    options.pullCommand = {std::filesystem::read_symlink("/proc/self/exe", ignored).string(),
                           "image",
                           "pull",
                           "--no-advice",
                           "--state",
                           paths_.state};
    options.networks.outbound = options_.network;
    options.networks.resolvers = options_.dns;
    engine::Machine machine = engine::thisMachine();
    CAY_ASSIGN(options.flavors, engine::Flavors::read(flavors, machine));
    options.gpus = std::move(machine.gpus);
    options.mode = mode_;
    engine_ = std::make_unique<engine::LocalEngine>(io_, std::move(options));
    return {};
  }

  Result<> tellReady() {
    const RunInfo info{.api = "http://127.0.0.1:" + std::to_string(desk_->port()),
                       .tlsPort = desk_->tlsPort(),
                       .domain = options_.domain,
                       .ownCertificate = !options_.tlsCert.empty()};
    CAY_TRY(run_->write(info));
    (void)std::puts(json::serialize(json::Object{{"ready", true},
                                                 {"api", info.api},
                                                 {"tls_port", info.tlsPort},
                                                 {"domain", info.domain},
                                                 {"state", toValidUtf8(paths_.state)}})
                        .c_str());
    (void)std::fflush(stdout);
    return {};
  }

  const ServeOptions& options_;
  const Paths paths_;
  asio::io_context io_{1};
  SignalSet stopSignals_{io_.get_executor(), SIGTERM, SIGINT};
  std::string why_;  // why it stops
  net::Event told_;
  net::WorkerPool workers_{kWorkers};
  isolation::Mode mode_ = isolation::Mode::kFull;
  std::optional<RunFile> run_;
  std::unique_ptr<CertificateUpkeep> certificates_;
  std::unique_ptr<Outbound> outbound_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<engine::LocalEngine> engine_;
  std::unique_ptr<Desk> desk_;
  int exitCode_ = kExitFailure;
};

}  // namespace

int serve(const ServeOptions& options) {
  // Whoever shares our uid must not read tokens and secrets from our memory.
  ::prctl(PR_SET_DUMPABLE, 0);
  Hub hub(options);
  const int code = hub.run();
  // What runs on the loop for ever refers to all of it, so neither can go first. The process goes.
  (void)std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace cay::hub
