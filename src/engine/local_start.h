// Building up and taking down what the jobs of the local engine share.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/job_house.h"
#include "net/task.h"

namespace cay::engine {

// Those of the state folder that the engine uses. Blocking.
Result<> makeFolders(const LocalOptions& options);

// All of the house, over what an earlier process left: sandboxes with their keepers, and the
// networks in use. `onLost`: see Networks::Options.
net::Task<Result<>> openHouse(JobHouse& house, std::vector<NetworkId> inUse,
                              std::function<void()> onLost);
// What is weaker on this machine than it should be, in sentences for people.
std::vector<std::string> weaknesses(const JobHouse& house);

// When no job runs any more: nothing of it is left but files.
net::Task<> closeHouse(JobHouse& house);

}  // namespace cay::engine
