#include "hub/schedule_rows.h"

#include "base/text.h"

namespace cay::hub {

Result<> putSchedule(Database& database, const ScheduleRow& row) {
  CAY_ASSIGN(Statement* const put,
             database.prepare("REPLACE INTO schedules(id, ns, spec, secrets, cron, principal, "
                              "suspended, concurrent, last_job, created_ms, last_ms, next_ms) "
                              "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  put->bind(row.id).bind(row.ns).bind(row.spec).bind(row.secrets).bind(row.cron);
  put->bind(row.principal).bind(int64_t{row.suspended}).bind(int64_t{row.concurrent});
  return put->bind(row.lastJob).bind(row.createdMs).bind(row.lastMs).bind(row.nextMs).run();
}

Result<> removeSchedule(Database& database, const std::string& id) {
  CAY_ASSIGN(Statement* const remove, database.prepare("DELETE FROM schedules WHERE id = ?"));
  CAY_TRY(remove->bind(id).run());
  if (database.changed() == 0) return fail(Code::kNotFound, "no scheduled job " + quoted(id));
  return {};
}

Result<std::vector<ScheduleRow>> readSchedules(Database& database) {
  CAY_ASSIGN(Statement* const at,
             database.prepare("SELECT id, ns, spec, secrets, cron, principal, suspended, "
                              "concurrent, last_job, created_ms, last_ms, next_ms FROM schedules "
                              "ORDER BY created_ms, id"));
  std::vector<ScheduleRow> rows;
  CAY_TRY(at->each([&] {
    rows.push_back({.id = at->text(0),
                    .ns = at->text(1),
                    .spec = at->text(2),
                    .secrets = at->text(3),
                    .cron = at->text(4),
                    .principal = at->text(5),
                    .suspended = at->number(6) != 0,
                    .concurrent = at->number(7) != 0,
                    .lastJob = at->text(8),
                    .createdMs = at->number(9),
                    .lastMs = at->number(10),
                    .nextMs = at->number(11)});
  }));
  return rows;
}

}  // namespace cay::hub
