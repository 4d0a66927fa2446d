// What the hub remembers, as plain values: no SQL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/job.h"

namespace cay::hub {

// Times are milliseconds of the wall clock since 1970; 0: not yet, or never.

struct JobRow {
  int64_t seq = 0;  // order of creation, from 1; never used again
  std::string id;
  std::string ns;
  engine::Kind kind = engine::Kind::kPlain;
  std::string spec;     // the body that asked for it, without secrets
  std::string secrets;  // JSON object of texts; leaves the hub only into the job
  engine::Pairs labels;
  std::vector<uint16_t> ports;
  std::vector<uint16_t> publicPorts;
  std::string initiatorType;
  std::string initiatorId;
  std::string initiatorName;
  engine::Stage stage = engine::Stage::kScheduling;
  std::string message;
  std::string image;  // what it really runs
  std::vector<std::string> notes;
  uint32_t attempt = 1;
  int64_t createdMs = 0;
  int64_t startedMs = 0;
  int64_t finishedMs = 0;
  bool healthSeen = false;
  std::string schedule;  // that started it; empty: none
  bool operator==(const JobRow&) const = default;
};

struct PrincipalRow {
  std::string id;
  std::string name;
  std::string type;  // "user" or "org"
  int64_t createdMs = 0;
  bool operator==(const PrincipalRow&) const = default;
};

struct TokenRow {
  std::string id;
  std::string hash;  // SHA-256 of the secret, in hex
  std::string hint;  // its last letters, for people
  std::string name;
  std::string role;
  std::string principal;
  std::vector<std::string> namespaces;
  int64_t createdMs = 0;
  int64_t expiresMs = 0;
  int64_t usedMs = 0;
  int64_t revokedMs = 0;
  bool operator==(const TokenRow&) const = default;
};

struct ScheduleRow {
  std::string id;
  std::string ns;
  std::string spec;
  std::string secrets;
  std::string cron;
  std::string principal;  // who made it
  bool suspended = false;
  bool concurrent = true;
  std::string lastJob;
  int64_t createdMs = 0;
  int64_t lastMs = 0;
  int64_t nextMs = 0;
  bool operator==(const ScheduleRow&) const = default;
};

struct JobFilter {
  std::string ns;
  std::vector<engine::Stage> stages;  // any of these; none: all
  engine::Pairs labels;               // all of these
  int64_t beforeSeq = INT64_MAX;
  uint32_t limit = 100;
};

}  // namespace cay::hub
