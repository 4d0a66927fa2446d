// What a client asks for when it starts a job (the body of POST /api/jobs/{namespace}), and what an
// engine is told to run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "engine/job.h"
#include "hub/job_fields.h"
#include "hub/rows.h"

namespace cay::hub {

// A body that has been understood.
struct JobWish {
  // As rows keep it: the body in one form for all clients, without secrets. With its secrets it is
  // a body again, of the same job.
  std::string spec;
  std::string secrets;  // JSON object of texts
  engine::Pairs labels;
  Expose expose;
  engine::Kind kind = engine::Kind::kPlain;
};

// kInvalid, naming the field, for what cannot be a job, wherever it would run.
Result<JobWish> parseJobWish(const json::Object& body);

// A label by which any client can say how long its job may wait: "600", "10m", "2h".
inline constexpr std::string_view kDeadlineLabel = "cay-deadline";

// What the engine is to run for a row. Resources are left to whoever knows the flavors.
Result<engine::JobSpec> jobSpecOf(const JobRow& row);

}  // namespace cay::hub
