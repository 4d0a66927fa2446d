#include "hub/job_routes.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "host/body_fields.h"
#include "hub/job_start.h"

namespace cay::hub {
namespace {

using engine::Kind;
using engine::Stage;

Initiator callerAsInitiator(const Caller& caller) {
  return {.type = "user", .id = caller.principalId, .name = caller.name};
}

// Clients find a sandbox by the port of its server, and take a pool's host only if that is its one
// port.
Result<> checkSandboxPorts(Kind kind, const Expose& ports) {
  if (kind == Kind::kPlain) return {};
  const auto has = [](const std::vector<uint16_t>& list) {
    return std::ranges::find(list, engine::kSandboxPort) != list.end();
  };
  const std::string port = std::to_string(engine::kSandboxPort);
  if (!has(ports.all) || has(ports.open)) {
    return host::wrong("ports", "must have " + port + ", which is this sandbox's server, and not " +
                                    "for everybody");
  }
  if (kind == Kind::kPool && ports.all.size() > 1) {
    return host::wrong("ports", "must be " + port + " alone for a host of sandboxes");
  }
  return {};
}

}  // namespace

net::Task<Result<JobPtr>> jobOf(ApiCall& call) {
  auto job = co_await call.state.jobs.get(std::string(call.id()));
  if (!job && job.error().code != Code::kNotFound) co_return job;
  if (!job || (*job)->row.ns != call.ns()) {
    co_return fail(Code::kNotFound,
                   "no such job: " + quoted(call.id()) + " in the namespace " + quoted(call.ns()));
  }
  co_return job;
}

net::Task<Result<>> answerJob(ApiCall& call, const JobRow& row) {
  CAY_CO_ASSIGN(json::Object info,
                jobInfo(row, call.state.callers.owner(row.ns), call.state.edge, wallMs()));
  co_return co_await answer(call, std::move(info));
}

net::Task<Result<>> createJob(ApiCall& call) {
  CAY_CO_ASSIGN(const json::Object body, co_await bodyOf(call));
  CAY_CO_ASSIGN(JobWish wish, parseJobWish(body));
  CAY_CO_TRY(mayMount(call.caller, body));
  JobStart start{.ns = std::string(call.ns()),
                 .wish = std::move(wish),
                 .initiator = callerAsInitiator(call.caller),
                 .schedule = {}};
  CAY_CO_ASSIGN(const JobPtr job, co_await startJob(call.state, std::move(start)));
  co_return co_await answerJob(call, job->row);
}

net::Task<Result<>> inspectJob(ApiCall& call) {
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  if (call.state.onInspected) call.state.onInspected(job, call.caller);
  co_return co_await answerJob(call, job->row);
}

net::Task<Result<>> cancelJob(ApiCall& call) {
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  if (!engine::isTerminal(job->row.stage)) {
    auto ended = co_await call.state.engine.end(job->row.id, Stage::kCanceled,
                                                "canceled by " + call.caller.name);
    if (!ended && ended.error().code == Code::kNotFound) {
      co_return fail(Code::kConflict, "this job is being taken in: try again");
    }
    CAY_CO_TRY(std::move(ended));
  }
  co_return co_await answerJob(call, job->row);
}

net::Task<Result<>> labelJob(ApiCall& call) {
  CAY_CO_ASSIGN(const json::Object body, co_await bodyOf(call));
  if (host::field(body, "labels") == nullptr) co_return host::wrong("labels", "is missing");
  CAY_CO_ASSIGN(engine::Pairs labels, readLabels(body));
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  CAY_CO_TRY(co_await call.state.jobs.relabel(job, labels));
  call.state.engine.relabel(job->row.id, std::move(labels));
  co_return co_await answerJob(call, job->row);
}

net::Task<Result<>> exposeJob(ApiCall& call) {
  CAY_CO_ASSIGN(json::Object body, co_await bodyOf(call));
  CAY_CO_ASSIGN(Expose ports, readExpose({{"expose", std::move(body)}}));
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  if (engine::isTerminal(job->row.stage)) {
    co_return fail(Code::kConflict, "this job is over: it has no ports any more");
  }
  CAY_CO_TRY(checkSandboxPorts(job->row.kind, ports));
  CAY_CO_TRY(co_await call.state.jobs.expose(job, std::move(ports)));
  co_return co_await answerJob(call, job->row);
}

net::Task<Result<>> duplicateJob(ApiCall& call) {
  CAY_CO_ASSIGN(const JobPtr job, co_await jobOf(call));
  CAY_CO_ASSIGN(JobWish wish, wishAgain(job->row.spec, job->row.secrets));
  CAY_CO_ASSIGN(const json::Object body, host::bodyObject(job->row.spec));
  CAY_CO_TRY(mayMount(call.caller, body));
  // Pools use only hosts that their own user has started.
  Initiator initiator = wish.kind == Kind::kPlain
                            ? Initiator{.type = "duplicated-job", .id = job->row.id, .name = {}}
                            : callerAsInitiator(call.caller);
  JobStart start{.ns = job->row.ns,
                 .wish = std::move(wish),
                 .initiator = std::move(initiator),
                 .schedule = {}};
  CAY_CO_ASSIGN(const JobPtr copy, co_await startJob(call.state, std::move(start)));
  co_return co_await answerJob(call, copy->row);
}

}  // namespace cay::hub
