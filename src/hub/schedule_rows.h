// Scheduled jobs in the hub's database. Blocking.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hub/rows.h"
#include "hub/sqlite.h"

namespace cay::hub {

// One that is there is replaced.
Result<> putSchedule(Database& database, const ScheduleRow& row);
// kNotFound if there is none.
Result<> removeSchedule(Database& database, const std::string& id);
// Oldest first.
Result<std::vector<ScheduleRow>> readSchedules(Database& database);

}  // namespace cay::hub
