#include "hub/schedule_info.h"

#include <utility>

#include "base/dates.h"
#include "hub/job_fields.h"
#include "hub/row_text.h"

namespace cay::hub {
namespace {

json::Value dateOf(int64_t ms) {
  if (ms == 0) return nullptr;
  return json::Value(isoDate(ms * 1000, Fraction::kMillis));
}

Result<json::Object> specOf(const ScheduleRow& row) {
  auto parsed = json::parse(row.spec);
  if (!parsed || !parsed->is_object()) return brokenRow("spec");
  return std::move(parsed->get_object());
}

}  // namespace

Result<json::Object> scheduleInfo(const ScheduleRow& row, const PrincipalRow& owner) {
  CAY_ASSIGN(json::Object spec, specOf(row));
  CAY_ASSIGN(const engine::Pairs secrets, parsePairs(row.secrets, "secrets"));
  const json::Value* attempts = spec.if_contains("attempts");
  if (attempts == nullptr || !attempts->is_int64()) return brokenRow("spec");
  // In the names of this object, which are not quite those of a job's request.
  spec["retry"] = attempts->get_int64() - 1;
  spec.erase("attempts");
  if (const json::Value* seconds = spec.if_contains("timeoutSeconds")) spec["timeout"] = *seconds;
  json::Object& names = spec["secrets"].emplace_object();
  for (const auto& [name, value] : secrets) names[name] = nullptr;
  spec["tags"] = json::Array();

  json::Value last = nullptr;
  if (!row.lastJob.empty()) last = json::Object{{"id", row.lastJob}, {"at", dateOf(row.lastMs)}};
  return json::Object{
      {"id", row.id},
      {"createdAt", dateOf(row.createdMs)},
      {"jobSpec", std::move(spec)},
      {"schedule", row.cron},
      {"suspend", row.suspended},
      {"concurrency", row.concurrent},
      {"status", json::Object{{"lastJob", std::move(last)}, {"nextJobRunAt", dateOf(row.nextMs)}}},
      {"owner", {{"id", owner.id}, {"name", owner.name}, {"type", owner.type}}},
      {"initiator", {{"type", "user"}, {"id", row.principal}}}};
}

Result<engine::Pairs> scheduleLabels(const ScheduleRow& row) {
  CAY_ASSIGN(const json::Object spec, specOf(row));
  return readLabels(spec);
}

}  // namespace cay::hub
