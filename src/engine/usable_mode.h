// What the jobs of this machine can stand behind.
#pragma once

#include "base/error.h"
#include "isolation/plan.h"

namespace cay::engine {

// By trying it. Where there is none, one sentence says what is missing and what helps.
Result<isolation::Mode> usableMode();

}  // namespace cay::engine
