#include "hub/identity_routes.h"

#include <cstdint>

namespace cay::hub {

net::Task<Result<>> answerWhoami(ApiCall& call) {
  const Caller& caller = call.caller;
  json::Array orgs;
  for (const std::string& ns : caller.namespaces) {
    if (ns == caller.name) continue;
    orgs.push_back(json::Object{
        {"type", "org"}, {"id", call.state.callers.owner(ns).id}, {"name", ns}, {"fullname", ns}});
  }
  // Pools use only hosts whose initiator has this id.
  co_return co_await answer(
      call,
      json::Object{{"type", "user"},
                   {"id", caller.principalId},
                   {"name", caller.name},
                   {"fullname", caller.name},
                   {"isPro", false},
                   {"canPay", false},
                   {"orgs", std::move(orgs)},
                   {"auth", json::Object{{"type", "access_token"},
                                         {"accessToken",
                                          {{"displayName", caller.tokenId}, {"role", "write"}}}}}});
}

net::Task<Result<>> answerHarnesses(ApiCall& call) {
  co_return co_await answer(
      call, json::Object{{"standardEnvVars", json::Array()}, {"harnesses", json::Object()}});
}

net::Task<Result<>> answerHealth(ApiCall& call) {
  if (!call.head.peer.loopback) {
    co_return fail(Code::kDenied, "this is told to the machine itself alone");
  }
  uint64_t scheduling = 0;
  uint64_t running = 0;
  for (const JobPtr& job : call.state.jobs.live()) {
    ++(job->row.stage == engine::Stage::kRunning ? running : scheduling);
  }
  co_return co_await answer(
      call, json::Object{{"status", "ok"},
                         {"version", CAY_VERSION},
                         {"engine", call.state.engine.name()},
                         {"jobs", json::Object{{"scheduling", scheduling}, {"running", running}}}});
}

}  // namespace cay::hub
