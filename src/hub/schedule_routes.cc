#include "hub/schedule_routes.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/flavors.h"
#include "host/body_fields.h"
#include "hub/job_routes.h"
#include "hub/job_spec.h"
#include "hub/job_start.h"
#include "hub/schedule_info.h"

namespace cay::hub {
namespace {

using host::field;

constexpr size_t kIdBytes = 12;

Result<bool> flag(const json::Object& body, std::string_view name) {
  const json::Value* value = field(body, name);
  if (value == nullptr) return false;
  if (!value->is_bool()) return host::wrongValue(name, "true or false", *value);
  return value->get_bool();
}

Result<std::string> scheduleText(const json::Object& body) {
  const json::Value* value = field(body, "schedule");
  if (value == nullptr) return host::wrong("schedule", "is missing");
  CAY_ASSIGN(std::string text, host::plainText(*value, "schedule"));
  CAY_TRY(nextRun(text, wallMs()));
  return text;
}

net::Task<Result<>> answerSchedule(ApiCall& call, const ScheduleRow& row) {
  CAY_CO_ASSIGN(json::Object info, scheduleInfo(row, call.state.callers.owner(row.ns)));
  co_return co_await answer(call, std::move(info));
}

net::Task<Result<>> changeSchedule(ApiCall& call, Scheduler::Change change) {
  CAY_CO_TRY(call.scheduler.find(call.ns(), call.id()));
  CAY_CO_ASSIGN(const ScheduleRow row,
                co_await call.scheduler.change(std::string(call.id()), std::move(change)));
  co_return co_await answerSchedule(call, row);
}

// What the body asks for, with all that is wrong with it told now and not at the first run.
Result<ScheduleRow> rowOf(const json::Object& body, const ApiCall& call) {
  const json::Value* spec = field(body, "jobSpec");
  if (spec == nullptr || !spec->is_object()) {
    return host::wrong("jobSpec", "must be an object: what to run");
  }
  CAY_ASSIGN(JobWish wish, parseJobWish(spec->get_object()));
  CAY_TRY(mayMount(call.caller, spec->get_object()));
  const json::Value* flavor = field(spec->get_object(), "flavor");
  if (flavor != nullptr) CAY_TRY(call.state.engine.flavors().find(flavor->get_string()));
  ScheduleRow row;
  row.id = randomHex(kIdBytes);
  row.ns = call.ns();
  row.spec = std::move(wish.spec);
  row.secrets = std::move(wish.secrets);
  CAY_ASSIGN(row.cron, scheduleText(body));
  CAY_ASSIGN(row.suspended, flag(body, "suspend"));
  CAY_ASSIGN(row.concurrent, flag(body, "concurrency"));
  row.principal = call.caller.principalId;
  row.createdMs = wallMs();
  return row;
}

}  // namespace

net::Task<Result<>> createSchedule(ApiCall& call) {
  CAY_CO_ASSIGN(const json::Object body, co_await bodyOf(call));
  CAY_CO_ASSIGN(ScheduleRow row, rowOf(body, call));
  CAY_CO_ASSIGN(const ScheduleRow added, co_await call.scheduler.add(std::move(row)));
  co_return co_await answerSchedule(call, added);
}

net::Task<Result<>> listSchedules(ApiCall& call) {
  CAY_CO_ASSIGN(const engine::Pairs wanted, labelsOf(call.query));
  const PrincipalRow owner = call.state.callers.owner(call.ns());
  json::Array infos;
  for (const ScheduleRow& row : call.scheduler.list(call.ns())) {
    CAY_CO_ASSIGN(const engine::Pairs labels, scheduleLabels(row));
    if (!std::ranges::all_of(wanted, [&](const auto& label) {
          return std::ranges::find(labels, label) != labels.end();
        })) {
      continue;
    }
    CAY_CO_ASSIGN(json::Object info, scheduleInfo(row, owner));
    infos.push_back(std::move(info));
  }
  co_return co_await answer(call, std::move(infos));
}

net::Task<Result<>> inspectSchedule(ApiCall& call) {
  CAY_CO_ASSIGN(const ScheduleRow row, call.scheduler.find(call.ns(), call.id()));
  co_return co_await answerSchedule(call, row);
}

net::Task<Result<>> deleteSchedule(ApiCall& call) {
  CAY_CO_ASSIGN(const ScheduleRow row, call.scheduler.find(call.ns(), call.id()));
  CAY_CO_TRY(co_await call.scheduler.remove(row.id));
  co_return co_await answer(call, json::Object{{"id", row.id}, {"deleted", true}});
}

net::Task<Result<>> suspendSchedule(ApiCall& call) {
  co_return co_await changeSchedule(call, [](ScheduleRow& row) { row.suspended = true; });
}

net::Task<Result<>> resumeSchedule(ApiCall& call) {
  co_return co_await changeSchedule(call, [](ScheduleRow& row) { row.suspended = false; });
}

net::Task<Result<>> runSchedule(ApiCall& call) {
  CAY_CO_ASSIGN(const ScheduleRow row, call.scheduler.find(call.ns(), call.id()));
  CAY_CO_ASSIGN(const JobPtr job, co_await call.scheduler.run(row.id));
  co_return co_await answerJob(call, job->row);
}

net::Task<Result<>> reschedule(ApiCall& call) {
  CAY_CO_ASSIGN(const json::Object body, co_await bodyOf(call));
  CAY_CO_ASSIGN(const std::string text, scheduleText(body));
  co_return co_await changeSchedule(call, [text](ScheduleRow& row) { row.cron = text; });
}

net::Task<Result<>> labelSchedule(ApiCall& call) {
  CAY_CO_ASSIGN(const json::Object body, co_await bodyOf(call));
  const json::Value* labels = field(body, "labels");
  if (labels == nullptr) co_return host::wrong("labels", "is missing");
  CAY_CO_TRY(readLabels(body));
  CAY_CO_ASSIGN(const ScheduleRow row, call.scheduler.find(call.ns(), call.id()));
  // A spec never changes but for its labels, so the text can be made beforehand.
  CAY_CO_ASSIGN(json::Object spec, host::bodyObject(row.spec));
  spec["labels"] = *labels;
  const std::string text = json::serialize(spec);
  co_return co_await changeSchedule(call, [text](ScheduleRow& changed) { changed.spec = text; });
}

}  // namespace cay::hub
