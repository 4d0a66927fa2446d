#include "hub/reachability.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>
#include <vector>

#include "base/log.h"
#include "hub/edge_name.h"
#include "net/event.h"

namespace cay::hub {
namespace {

constexpr Millis kBetweenLooks{1000};

bool isWatched(const Job& job) {
  return job.row.kind != engine::Kind::kPlain && job.row.stage == engine::Stage::kRunning &&
         !job.row.healthSeen;
}

}  // namespace

Diagnosis* Reachability::diagnosisOf(const Job& job) {
  if (!isWatched(job)) return nullptr;
  const auto [entry, isNew] = watched_.try_emplace(job.row.id);
  if (isNew) {
    // It may have been running for long before this process has.
    const int64_t age = std::max<int64_t>(0, wallMs() - job.row.startedMs);
    entry->second.running(now_() - age);
  }
  return &entry->second;
}

Diagnosis* Reachability::diagnosisOf(std::string_view host) {
  const auto name = parseEdgeHost(host, edge_.domain);
  const JobPtr job = name && name->port == engine::kSandboxPort ? jobs_.find(name->job) : nullptr;
  return job ? diagnosisOf(*job) : nullptr;
}

void Reachability::inspected(const Job& job, const Caller& caller) {
  Diagnosis* const diagnosis = diagnosisOf(job);
  if (diagnosis == nullptr) return;
  const bool byInitiator =
      job.row.initiatorType == "user" && job.row.initiatorId == caller.principalId;
  diagnosis->inspected(byInitiator, now_());
}

void Reachability::reached(Job& job) {
  if (Diagnosis* const diagnosis = diagnosisOf(job)) diagnosis->reached();
  jobs_.reached(job);
}

void Reachability::tlsRefused(std::string_view serverName) {
  if (Diagnosis* const diagnosis = diagnosisOf(serverName)) diagnosis->tlsRefused();
}

void Reachability::proxyRefused(std::string_view target) {
  if (Diagnosis* const diagnosis = diagnosisOf(target)) diagnosis->proxyRefused();
}

net::Task<> Reachability::watch() {
  for (;;) {
    co_await net::sleepFor(kBetweenLooks);
    look();
  }
}

void Reachability::look() {
  for (const JobPtr& job : jobs_.live()) (void)diagnosisOf(*job);
  std::erase_if(watched_, [&](const auto& entry) {
    const JobPtr job = jobs_.find(entry.first);
    return !job || !isWatched(*job);
  });
  std::vector<std::string> unreached;
  for (const auto& [id, diagnosis] : watched_) {
    if (diagnosis.verdict(now_())) unreached.push_back(id);
  }
  for (std::string& id : unreached) {
    boost::asio::co_spawn(io_, endIfUnreached(std::move(id)), boost::asio::detached);
  }
}

net::Task<> Reachability::endIfUnreached(std::string id) {
  const auto found = watched_.find(id);
  const auto verdict = found == watched_.end() ? std::nullopt : found->second.verdict(now_());
  if (!verdict) co_return;
  watched_.erase(found);
  EdgeFacts facts{
      .url = edgeUrl({.job = id, .port = engine::kSandboxPort}, edge_.domain, edge_.tlsPort),
      .domain = edge_.domain,
      .bundle = bundle_};
  const auto ended = co_await engine_.end(id, engine::Stage::kError, explain(*verdict, facts));
  if (!ended) {
    log(Level::kError, "a job whose client cannot reach it could not be ended",
        {{"job", id}, {"error", ended.error().message}});
  }
}

}  // namespace cay::hub
