// Are the walls there? The probe is this program, run as a command in a sandbox: it tries what is
// forbidden and prints one line for each act: name, tab, "denied", "allowed" or "none" (could not
// be tried), tab, detail. The host then judges the walls by those lines.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "isolation/plan.h"
#include "isolation/walls.h"

namespace cay::isolation {

// The first argument that makes this program the probe; those of Bait::toArguments follow.
inline constexpr std::string_view kProbeArgument = "--cay-probe";
// `arguments`: those after kProbeArgument. The exit status.
int runProbe(std::span<char* const> arguments);

// What cannot be tried from inside, or does not show there.
struct Facts {
  bool memoryGroup = false;
  bool pidsGroup = false;
  bool cpuGroup = false;
  bool diskLimited = false;
  std::string whyNoGroups;
};

// The probe came to its end: there is a line for each act.
bool isWhole(std::string_view output);
// All walls, in a fixed order. A wall of which an act has no line is not held.
Walls judge(Mode mode, std::string_view output, const Facts& facts);

}  // namespace cay::isolation
