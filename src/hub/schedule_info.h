// Schedules as clients see them: the ScheduledJobInfo object of the Jobs API.
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "hub/rows.h"

namespace cay::hub {

// kInternal if the row is broken.
Result<json::Object> scheduleInfo(const ScheduleRow& row, const PrincipalRow& owner);
// The labels of the jobs that it starts.
Result<engine::Pairs> scheduleLabels(const ScheduleRow& row);

}  // namespace cay::hub
