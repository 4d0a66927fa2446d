// Jobs that start again and again, by the times of their schedule. What was due while no hub ran is
// not made up for.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hub/hub_state.h"
#include "hub/rows.h"
#include "net/event.h"
#include "net/task.h"

namespace cay::hub {

class Scheduler {
 public:
  explicit Scheduler(HubState& state) : state_(state) {}

  // Those of an earlier process; what they missed is over.
  void restore(std::vector<ScheduleRow> rows, int64_t nowMs);

  // Complete when the change is stored; on failure there is none. kInvalid for a text that is no
  // schedule.
  net::Task<Result<ScheduleRow>> add(ScheduleRow row);
  // kNotFound if there is none of that id in the namespace.
  [[nodiscard]] Result<ScheduleRow> find(std::string_view ns, std::string_view id) const;
  // Of the namespace, oldest first.
  [[nodiscard]] std::vector<ScheduleRow> list(std::string_view ns) const;
  using Change = std::function<void(ScheduleRow& row)>;
  net::Task<Result<ScheduleRow>> change(std::string id, Change change);
  net::Task<Result<>> remove(std::string id);

  // Starts a job of it now, whatever its times are. kConflict if one runs and two must not.
  net::Task<Result<JobPtr>> run(std::string id);
  // Starts all that are due by now; their next times lie ahead of it.
  net::Task<> runDue(int64_t nowMs);
  // Starts them when they are due, as long as the loop runs.
  net::Task<> follow();

 private:
  struct Entry {
    ScheduleRow row;
    bool starting = false;
  };

  [[nodiscard]] bool mayRun(const Entry& entry) const;

  HubState& state_;
  std::map<std::string, Entry, std::less<>> entries_;
  net::Event changed_;
};

// When a schedule is due next; kInvalid for a text that is none.
Result<int64_t> nextRun(const std::string& schedule, int64_t afterMs);

}  // namespace cay::hub
