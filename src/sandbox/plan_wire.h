// The plan of a sandbox's walls as bytes, on its way to the nursery.
#pragma once

#include "isolation/plan.h"
#include "sandbox/wire.h"

namespace cay::sandbox {

void putPlan(Writer& out, const isolation::Plan& plan);
isolation::Plan getPlan(Reader& in);

}  // namespace cay::sandbox
