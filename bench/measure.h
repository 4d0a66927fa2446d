// The measurements, one function each. Every one starts the servers it needs and adds its figures
// to the report.
#pragma once

#include <cstddef>
#include <string>

#include "report.h"

namespace cay::bench {

struct Settings {
  std::string host;  // path of cay-host
  bool quick = false;
  size_t held = 0;  // sandboxes without a keeper at once; 0: as many as usual
  size_t kept = 0;  // sandboxes with a keeper at once; 0: as many as usual
};

void measureRoundTrips(const Settings& settings, Report& report);
void measureCommandsPerSecond(const Settings& settings, Report& report);
void measureFiles(const Settings& settings, Report& report);
void measureHealth(const Settings& settings, Report& report);
void measureStart(const Settings& settings, Report& report);
void measureMemory(const Settings& settings, Report& report);
void measureSize(const Settings& settings, Report& report);

void measurePoolLatency(const Settings& settings, Report& report);
void measurePoolRate(const Settings& settings, Report& report);
void measurePoolCycles(const Settings& settings, Report& report);
void measurePoolHeld(const Settings& settings, Report& report);

}  // namespace cay::bench
