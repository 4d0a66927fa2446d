#include "hub/store.h"

#include <utility>

#include "hub/job_rows.h"
#include "hub/schedule_rows.h"
#include "hub/schema.h"

namespace cay::hub {
namespace {

// Rises when another connection has committed.
constexpr const char* kDataVersion = "PRAGMA data_version";

// Undone alone if it fails, so that it does not take those with it that are committed together.
Result<> actAlone(Database& database, const std::function<Result<>(Database&)>& act) {
  CAY_TRY(database.execute("SAVEPOINT one"));
  auto done = act(database);
  if (done) return database.execute("RELEASE one");
  // A full disk may have ended the whole transaction.
  if (database.inTransaction()) CAY_TRY(database.execute("ROLLBACK TO one; RELEASE one"));
  return done;
}

}  // namespace

net::Task<Result<std::unique_ptr<Store>>> Store::open(std::string file) {
  std::unique_ptr<Store> store(new Store);
  CAY_CO_TRY(co_await store->thread_.run([&]() -> Result<> {
    CAY_ASSIGN(store->database_, openHubDatabase(file));
    CAY_ASSIGN(store->seenVersion_, store->database_->askNumber(kDataVersion));
    return {};
  }));
  co_return store;
}

// The thread takes runs in the order in which they were asked for, so a write is committed by its
// own run at the latest, and mostly by that of one before it.
net::Task<Result<>> Store::write(Act act) {
  Write mine{std::move(act), {}};
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(&mine);
  }
  co_await thread_.run([this] { commitWaiting(); });
  co_return std::move(mine.result);
}

void Store::commitWaiting() {
  std::vector<Write*> writes;
  {
    const std::scoped_lock lock(mutex_);
    writes.swap(waiting_);
  }
  if (writes.empty()) return;
  const auto committed = commitAll(writes);
  if (committed) return;
  if (database_->inTransaction()) (void)database_->execute("ROLLBACK");
  for (Write* write : writes) {
    if (write->result) write->result = committed;
  }
}

Result<> Store::commitAll(const std::vector<Write*>& writes) {
  CAY_TRY(database_->execute("BEGIN IMMEDIATE"));
  for (Write* write : writes) {
    write->result = actAlone(*database_, write->act);
    if (!database_->inTransaction()) return write->result;
  }
  return database_->execute("COMMIT");
}

net::Task<Result<Store::Snapshot>> Store::load() {
  co_return co_await thread_.run([this]() -> Result<Snapshot> {
    Snapshot all;
    CAY_ASSIGN(all.identities, readIdentities(*database_));
    CAY_ASSIGN(all.live, liveJobs(*database_));
    CAY_ASSIGN(all.schedules, readSchedules(*database_));
    CAY_ASSIGN(all.lastSeq, lastJobSeq(*database_));
    return all;
  });
}

net::Task<Result<>> Store::insert(JobRow row) {
  co_return co_await write([&](Database& database) { return insertJob(database, row); });
}

net::Task<Result<>> Store::update(JobRow row) {
  co_return co_await write([&](Database& database) { return updateJob(database, row); });
}

net::Task<Result<JobRow>> Store::job(std::string id) {
  co_return co_await thread_.run([&] { return findJob(*database_, id); });
}

net::Task<Result<std::vector<JobRow>>> Store::list(JobFilter filter) {
  co_return co_await thread_.run([&] { return listJobs(*database_, filter); });
}

net::Task<Result<std::vector<std::string>>> Store::forgetEnded(int64_t beforeMs, uint64_t keep) {
  std::vector<std::string> ids;
  CAY_CO_TRY(co_await write([&](Database& database) -> Result<> {
    CAY_ASSIGN(ids, forgetEndedJobs(database, beforeMs, keep));
    return {};
  }));
  co_return ids;
}

net::Task<Result<>> Store::insert(PrincipalRow row) {
  co_return co_await write([&](Database& database) { return insertPrincipal(database, row); });
}

net::Task<Result<>> Store::insert(TokenRow row) {
  co_return co_await write([&](Database& database) { return insertToken(database, row); });
}

net::Task<Result<>> Store::tokenUsed(std::string id, int64_t nowMs) {
  co_return co_await write([&](Database& database) { return markTokenUsed(database, id, nowMs); });
}

net::Task<Result<std::optional<Identities>>> Store::foreignChange() {
  co_return co_await thread_.run([this]() -> Result<std::optional<Identities>> {
    CAY_ASSIGN(const int64_t version, database_->askNumber(kDataVersion));
    if (version == seenVersion_) return std::nullopt;
    CAY_ASSIGN(Identities all, readIdentities(*database_));
    seenVersion_ = version;
    return all;
  });
}

net::Task<Result<>> Store::put(ScheduleRow row) {
  co_return co_await write([&](Database& database) { return putSchedule(database, row); });
}

net::Task<Result<>> Store::removeSchedule(std::string id) {
  co_return co_await write([&](Database& database) { return hub::removeSchedule(database, id); });
}

}  // namespace cay::hub
