// How a job comes to be: from a body that was understood to one that the engine has taken.
#pragma once

#include <string>

#include "base/error.h"
#include "base/json.h"
#include "engine/job.h"
#include "hub/hub_state.h"
#include "hub/job_spec.h"
#include "hub/tokens.h"
#include "net/task.h"

namespace cay::hub {

struct Initiator {
  std::string type;
  std::string id;
  std::string name;
};

struct JobStart {
  std::string ns;
  JobWish wish;
  Initiator initiator;
  std::string schedule;  // that it belongs to; empty: none
};

// Whether somebody may have the volumes that a body asks for: a bucket belongs to its namespace,
// while models, datasets and spaces were put here for everybody.
Result<> mayMount(const Caller& caller, const json::Object& body);

// The body that a row was made of, understood again.
Result<JobWish> wishAgain(const std::string& spec, const std::string& secrets);

// What the engine is to run for a row, with what its flavor means here. kInvalid for a flavor that
// is not here.
Result<engine::JobSpec> fullSpecOf(const JobRow& row, const engine::Engine& engine);

// Completes when the job is stored and taken: it survives a kill of this process. What the engine
// refuses ends as ERROR with the engine's reason, which is also the error here.
net::Task<Result<JobPtr>> startJob(HubState& state, JobStart start);

}  // namespace cay::hub
