#include "hub/desk.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "base/clock.h"
#include "hub/restore.h"
#include "hub/retention.h"
#include "net/await.h"

namespace cay::hub {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Logs and exec streams of many clients stay open for long.
constexpr size_t kMostConnections = 8192;
constexpr Millis kDrainPatience{1'000};
constexpr Millis kDrainStep{10};
constexpr int64_t kDayMs = 86'400'000;

}  // namespace

Result<std::unique_ptr<Desk>> Desk::make(Parts parts) {
  UpstreamSettings upstream{.url = parts.options.upstream, .token = {}};
  if (!parts.options.upstreamTokenFile.empty()) {
    CAY_ASSIGN(upstream.token, readUpstreamToken(parts.options.upstreamTokenFile));
  }
  auto tokens = std::make_unique<Tokens>();
  CAY_ASSIGN(auto relay, Relay::open(std::move(upstream), *tokens, parts.outbound));
  return std::unique_ptr<Desk>(new Desk(std::move(parts), std::move(tokens), std::move(relay)));
}

Desk::Desk(Parts parts, std::unique_ptr<Tokens> tokens, std::unique_ptr<Relay> relay)
    : at_(std::move(parts)),
      tokens_(std::move(tokens)),
      relay_(std::move(relay)),
      callers_(at_.store, *tokens_),
      jobs_(at_.io, at_.store),
      state_{
          .io = at_.io,
          .workers = at_.workers,
          .store = at_.store,
          .callers = callers_,
          .jobs = jobs_,
          .engine = at_.engine,
          .edge = {.domain = at_.options.domain, .tlsPort = at_.options.tlsPort},
          .serverFile = at_.options.cayHost,
          .bucketFolder = at_.bucketFolder,
          .onInspected = [this](const JobPtr& job,
                                const Caller& caller) { reachability_.inspected(*job, caller); }},
      reachability_(at_.io, jobs_, at_.engine, state_.edge, at_.bundle),
      edge_({.address = state_.edge,
             .tokens = *tokens_,
             .jobs = jobs_,
             .engine = at_.engine,
             .reachability = reachability_}),
      tls_(at_.io, at_.certificates.context(), reachability_),
      connects_({.address = state_.edge,
                 .tokens = *tokens_,
                 .reachability = reachability_,
                 .tls = tls_,
                 .outbound = at_.outbound},
                {.toOthers = at_.options.tunnel}),
      router_(state_, scheduler_, side_, *relay_),
      door_(router_, edge_, state_.edge, FrontDoor::ApiByTls::kYes) {}

net::Task<Result<>> Desk::restore() {
  return restoreHub(state_, scheduler_);
}

Result<> Desk::open() {
  const tcp::endpoint api(asio::ip::address_v4::loopback(), at_.options.port);
  const net::ServerLimits limits{.maxConnections = kMostConnections,
                                 .connects = net::Connects::kAllowed};
  CAY_ASSIGN(server_, net::Server::listen(at_.io, {api}, door_, limits, &at_.workers));
  tls_.serveWith(*server_);
  std::vector<tcp::endpoint> endpoints;
  endpoints.reserve(at_.options.listen.size());
  for (const std::string& address : at_.options.listen) {
    endpoints.emplace_back(asio::ip::make_address(address), at_.options.tlsPort);
  }
  CAY_TRY(tls_.listen(endpoints));
  state_.edge.tlsPort = tls_.port();
  follow();
  return {};
}

void Desk::follow() {
  const Retention retention{.mostAgeMs = at_.options.keepLogsDays * kDayMs,
                            .mostJobs = at_.options.keepJobs};
  asio::co_spawn(at_.io, callers_.follow(), asio::detached);
  asio::co_spawn(at_.io, scheduler_.follow(), asio::detached);
  asio::co_spawn(at_.io, reachability_.watch(), asio::detached);
  asio::co_spawn(at_.io, at_.certificates.watch(), asio::detached);
  asio::co_spawn(at_.io, keepForgetting(state_, retention), asio::detached);
}

net::Task<> Desk::close() {
  tls_.stop();
  server_->stop();
  const int64_t until = monotonicMs() + kDrainPatience.count();
  while (server_->connections() > 0 && monotonicMs() < until) co_await net::sleepFor(kDrainStep);
}

}  // namespace cay::hub
