#include "engine/job_body.h"

#include <algorithm>

#include "base/clock.h"

namespace cay::engine {

int64_t JobGround::timeLeftMs() const {
  if (spec.timeoutMs == 0) return 0;
  const int64_t startedAtMs = state.status.startedAtMs;
  const int64_t spent = startedAtMs == 0 ? 0 : wallMs() - startedAtMs;
  return std::clamp<int64_t>(spec.timeoutMs - spent, 1, spec.timeoutMs);
}

uint32_t poolCapacity(const JobSpec& spec) {
  constexpr uint32_t kDefault = 64;
  return spec.server.capacity == 0 ? kDefault : spec.server.capacity;
}

net::Task<Result<net::Stream>> JobBody::dialServer() {
  co_return fail(Code::kUnreachable, "this job has no server of sandboxes");
}

std::unique_ptr<JobBody> makeBody(const JobGround& ground) {
  switch (ground.spec.kind) {
    case Kind::kPlain:
      return makePlainBody(ground);
    case Kind::kDedicated:
      return makeDedicatedBody(ground);
    case Kind::kPool:
      return makePoolBody(ground);
  }
  return nullptr;
}

}  // namespace cay::engine
