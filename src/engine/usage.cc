#include "engine/usage.h"

namespace cay::engine {

net::Task<Result<Usage>> usageOf(const JobGround& ground) {
  const isolation::GroupUsage groups = ground.house.groups.usage(ground.pooled->record.slot);
  Usage out{.cpuMs = groups.cpuMs,
            .memoryBytes = groups.memoryBytes,
            .memoryLimit = ground.spec.resources.memoryBytes,
            .milliCpus = ground.spec.resources.milliCpus};
  CAY_CO_ASSIGN(const sys::LinkTraffic traffic,
                co_await ground.house.networks->traffic(ground.network.id));
  out.receivedBytes = traffic.receivedBytes;
  out.sentBytes = traffic.sentBytes;
  co_return out;
}

}  // namespace cay::engine
