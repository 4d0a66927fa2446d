// Jobs as clients see them: the JobInfo object of the Jobs API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "hub/rows.h"

namespace cay::hub {

// Where exposed ports are reached.
struct EdgeAddress {
  std::string domain;
  uint16_t tlsPort = 0;
};

// Whose a namespace is: the principal of that name, or an organisation that nobody made, whose id
// follows from its name.
PrincipalRow ownerOf(std::string_view ns, const std::vector<PrincipalRow>& principals);

// What clients demand of it is in job_info.cc beside each field. kInternal if the row is broken.
Result<json::Object> jobInfo(const JobRow& row, const PrincipalRow& owner, const EdgeAddress& edge,
                             int64_t nowMs);

}  // namespace cay::hub
