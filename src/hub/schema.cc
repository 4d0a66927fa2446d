#include "hub/schema.h"

namespace cay::hub {
namespace {

// "CayH", in the head of every file that we made.
constexpr int64_t kApplication = 0x43617948;

constexpr const char* kSteps[] = {
    R"(
CREATE TABLE principals(id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, type TEXT NOT NULL,
  created_ms INTEGER NOT NULL) STRICT;
CREATE TABLE tokens(id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, hint TEXT NOT NULL,
  name TEXT NOT NULL, role TEXT NOT NULL, principal TEXT NOT NULL REFERENCES principals(id),
  namespaces TEXT NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,
  used_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL) STRICT;
CREATE TABLE jobs(seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, ns TEXT NOT NULL,
  kind INTEGER NOT NULL, spec TEXT NOT NULL, secrets TEXT NOT NULL, labels TEXT NOT NULL,
  expose TEXT NOT NULL, initiator_type TEXT NOT NULL, initiator_id TEXT NOT NULL,
  initiator_name TEXT NOT NULL, stage INTEGER NOT NULL, message TEXT NOT NULL, image TEXT NOT NULL,
  notes TEXT NOT NULL, attempt INTEGER NOT NULL, created_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, health_seen INTEGER NOT NULL,
  schedule TEXT NOT NULL) STRICT;
CREATE INDEX jobs_by_ns ON jobs(ns, seq);
CREATE INDEX jobs_live ON jobs(stage) WHERE stage < 2;
CREATE INDEX jobs_ended ON jobs(finished_ms) WHERE stage >= 2;
CREATE TABLE job_labels(seq INTEGER NOT NULL REFERENCES jobs(seq) ON DELETE CASCADE,
  key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY(key, value, seq)) STRICT, WITHOUT ROWID;
CREATE INDEX job_labels_of ON job_labels(seq);
CREATE TABLE schedules(id TEXT PRIMARY KEY, ns TEXT NOT NULL, spec TEXT NOT NULL,
  secrets TEXT NOT NULL, cron TEXT NOT NULL, principal TEXT NOT NULL, suspended INTEGER NOT NULL,
  concurrent INTEGER NOT NULL, last_job TEXT NOT NULL, created_ms INTEGER NOT NULL,
  last_ms INTEGER NOT NULL, next_ms INTEGER NOT NULL) STRICT;
)",
};

Result<> checkOurs(Database& database, int64_t version, int64_t known) {
  if (version > known) {
    return fail(Code::kConflict, "it is of a newer cay (at version " + std::to_string(version) +
                                     ", this program knows " + std::to_string(known) +
                                     "): use that one, or another --state");
  }
  CAY_ASSIGN(const int64_t tables, database.askNumber("SELECT count(*) FROM sqlite_schema"));
  CAY_ASSIGN(const int64_t application, database.askNumber("PRAGMA application_id"));
  if (version < 0 || (tables > 0 && application != kApplication)) {
    return fail(Code::kConflict, "it is not a database of cay");
  }
  return {};
}

Result<> takeSteps(Database& database, std::span<const char* const> steps) {
  const auto known = static_cast<int64_t>(steps.size());
  // Within the transaction: another process may just have done it.
  CAY_ASSIGN(const int64_t version, database.askNumber("PRAGMA user_version"));
  CAY_TRY(checkOurs(database, version, known));
  for (const char* step : steps.subspan(static_cast<size_t>(version))) {
    CAY_TRY(database.execute(step));
  }
  const std::string marks = "PRAGMA application_id = " + std::to_string(kApplication) +
                            "; PRAGMA user_version = " + std::to_string(known);
  return database.execute(marks.c_str());
}

}  // namespace

std::span<const char* const> schemaSteps() {
  return kSteps;
}

Result<> upgradeSchema(Database& database, std::span<const char* const> steps) {
  CAY_ASSIGN(const int64_t version, database.askNumber("PRAGMA user_version"));
  if (version == static_cast<int64_t>(steps.size())) return {};
  CAY_TRY(database.execute("BEGIN IMMEDIATE"));
  auto done = takeSteps(database, steps);
  if (done) done = database.execute("COMMIT");
  // What is undone or not is SQLite's to say: some failures have ended the transaction already.
  if (!done && database.inTransaction()) (void)database.execute("ROLLBACK");
  return done;
}

Result<Database> openHubDatabase(const std::string& file) {
  CAY_ASSIGN(Database database, Database::open(file));
  const auto prepare = [&]() -> Result<> {
    CAY_ASSIGN(const int64_t version, database.askNumber("PRAGMA user_version"));
    CAY_TRY(checkOurs(database, version, static_cast<int64_t>(schemaSteps().size())));
    CAY_TRY(
        database.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; "
                         "PRAGMA foreign_keys=ON; PRAGMA trusted_schema=OFF"));
    return upgradeSchema(database, schemaSteps());
  };
  if (auto ready = prepare(); !ready) {
    return std::unexpected(std::move(ready).error().wrap("'" + file + "'"));
  }
  return database;
}

}  // namespace cay::hub
