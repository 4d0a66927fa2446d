// Pooled sandboxes as clients see them.
#pragma once

#include <string>

#include "base/json.h"
#include "host/sandbox_usage.h"
#include "isolation/walls.h"
#include "sandbox/registry.h"

namespace cay::host {

// {"id","state","created_at_ms","last_activity_ms","labels","limits","cause"}: what costs nothing
// to tell.
json::Object summaryOf(sandbox::Pooled& pooled);
// With "walls" and "usage".
json::Object detailsOf(sandbox::Pooled& pooled, const isolation::Walls& walls,
                       const SandboxUsage& usage);

}  // namespace cay::host
