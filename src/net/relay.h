// Two streams joined: what comes from either goes to the other.
#pragma once

#include "base/clock.h"
#include "net/event.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::net {

// Takes both over and copies both ways until both directions have ended or one fails; half-closes
// are passed on, and so is a failure, as a reset. Ends as well when nothing has come from either
// side for `idleLimit`.
Task<> relay(Stream& a, Stream& b, Millis idleLimit = Event::kForever);

}  // namespace cay::net
