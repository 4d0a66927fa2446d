#include "hub/job_start.h"

#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
#include "engine/flavors.h"
#include "engine/volumes.h"
#include "host/body_fields.h"
#include "hub/job_fields.h"
#include "hub/row_text.h"

namespace cay::hub {
namespace {

constexpr size_t kIdBytes = 12;

JobRow rowOf(JobStart start) {
  JobRow row;
  row.id = randomHex(kIdBytes);
  row.ns = std::move(start.ns);
  row.kind = start.wish.kind;
  row.spec = std::move(start.wish.spec);
  row.secrets = std::move(start.wish.secrets);
  row.labels = std::move(start.wish.labels);
  row.ports = std::move(start.wish.expose.all);
  row.publicPorts = std::move(start.wish.expose.open);
  row.initiatorType = std::move(start.initiator.type);
  row.initiatorId = std::move(start.initiator.id);
  row.initiatorName = std::move(start.initiator.name);
  row.schedule = std::move(start.schedule);
  row.createdMs = wallMs();
  return row;
}

}  // namespace

Result<> mayMount(const Caller& caller, const json::Object& body) {
  CAY_ASSIGN(const std::vector<engine::VolumeRef> volumes, readVolumes(body));
  for (const engine::VolumeRef& volume : volumes) {
    const bool isBucket = volume.type == engine::VolumeRef::Type::kBucket;
    if (!isBucket || engine::Volumes::isServer(volume)) continue;
    if (caller.may(std::string_view(volume.source).substr(0, volume.source.find('/')))) continue;
    return fail(Code::kDenied, "the token of " + quoted(caller.name) +
                                   " has no right to the bucket " + quoted(volume.source));
  }
  return {};
}

Result<JobWish> wishAgain(const std::string& spec, const std::string& secrets) {
  CAY_ASSIGN(json::Object body, host::bodyObject(spec));
  CAY_ASSIGN(json::Value hidden, json::parse(secrets));
  body["secrets"] = std::move(hidden);
  return parseJobWish(body);
}

Result<engine::JobSpec> fullSpecOf(const JobRow& row, const engine::Engine& engine) {
  CAY_ASSIGN(engine::JobSpec spec, jobSpecOf(row));
  CAY_ASSIGN(const engine::Flavor flavor, engine.flavors().find(spec.flavor));
  spec.resources = flavor.resources;
  return spec;
}

net::Task<Result<JobPtr>> startJob(HubState& state, JobStart start) {
  JobRow row = rowOf(std::move(start));
  CAY_CO_ASSIGN(engine::JobSpec spec, fullSpecOf(row, state.engine));
  CAY_CO_ASSIGN(JobPtr job, co_await state.jobs.add(std::move(row)));
  const auto taken = co_await state.engine.submit(std::move(spec));
  if (taken) co_return job;
  engine::Status refused;
  refused.stage = engine::Stage::kError;
  refused.message = taken.error().message;
  state.jobs.changed(job->row.id, refused);
  co_return std::unexpected(taken.error());
}

}  // namespace cay::hub
