// What unmodified clients send to start jobs, as tests/hub/record_bodies.py has recorded it.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/json.h"
#include "hub/job_spec.h"

namespace cay::hub {

inline constexpr const char* kClients[] = {"1.31.0", "2.0.0", "2.4.0"};

inline std::string readTestData(const std::string& name) {
  const std::ifstream in(CAY_HUB_TESTDATA "/" + name, std::ios::binary);
  if (!in) throw std::runtime_error("no test data " + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline json::Object recordedBody(const std::string& client, const std::string& name) {
  return json::parse(readTestData("bodies-" + client + ".json"))->at(name).as_object();
}

// The row that a hub makes of a body.
inline Result<JobRow> rowOf(const json::Object& body) {
  CAY_ASSIGN(JobWish wish, parseJobWish(body));
  JobRow row;
  row.seq = 1;
  row.id = "6a0000000000000000000001";
  row.ns = "tester";
  row.kind = wish.kind;
  row.spec = std::move(wish.spec);
  row.secrets = std::move(wish.secrets);
  row.labels = std::move(wish.labels);
  row.ports = std::move(wish.expose.all);
  row.publicPorts = std::move(wish.expose.open);
  row.initiatorType = "user";
  row.initiatorId = "5e9ecfc04957053f60648a3e";
  row.initiatorName = "tester";
  row.createdMs = 1767225600000;
  return row;
}

}  // namespace cay::hub
