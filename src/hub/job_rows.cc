#include "hub/job_rows.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "hub/row_text.h"

namespace cay::hub {
namespace {

constexpr std::string_view kColumns =
    "seq, id, ns, kind, spec, secrets, labels, expose, initiator_type, initiator_id, "
    "initiator_name, stage, message, image, notes, attempt, created_ms, started_ms, finished_ms, "
    "health_seen, schedule";

std::string exposeText(const JobRow& row) {
  const auto numbers = [](const std::vector<uint16_t>& ports) {
    return json::Array(ports.begin(), ports.end());
  };
  return json::serialize(
      json::Object{{"ports", numbers(row.ports)}, {"portsPublic", numbers(row.publicPorts)}});
}

Result<std::vector<uint16_t>> portsOf(const json::Value& expose, std::string_view name) {
  std::vector<uint16_t> ports;
  const json::Value* list = expose.is_object() ? expose.get_object().if_contains(name) : nullptr;
  if (list == nullptr || !list->is_array()) return brokenRow("expose");
  for (const json::Value& port : list->get_array()) {
    if (!port.is_int64()) return brokenRow("expose");
    ports.push_back(static_cast<uint16_t>(port.get_int64()));
  }
  return ports;
}

Result<JobRow> readJob(const Statement& at) {
  JobRow row;
  int column = 0;
  row.seq = at.number(column++);
  row.id = at.text(column++);
  row.ns = at.text(column++);
  row.kind = static_cast<engine::Kind>(at.number(column++));
  row.spec = at.text(column++);
  row.secrets = at.text(column++);
  CAY_ASSIGN(row.labels, parsePairs(at.text(column++), "labels"));
  CAY_ASSIGN(const json::Value expose, json::parse(at.text(column++)));
  CAY_ASSIGN(row.ports, portsOf(expose, "ports"));
  CAY_ASSIGN(row.publicPorts, portsOf(expose, "portsPublic"));
  row.initiatorType = at.text(column++);
  row.initiatorId = at.text(column++);
  row.initiatorName = at.text(column++);
  row.stage = static_cast<engine::Stage>(at.number(column++));
  row.message = at.text(column++);
  row.image = at.text(column++);
  CAY_ASSIGN(row.notes, parseTexts(at.text(column++), "notes"));
  row.attempt = static_cast<uint32_t>(at.number(column++));
  row.createdMs = at.number(column++);
  row.startedMs = at.number(column++);
  row.finishedMs = at.number(column++);
  row.healthSeen = at.number(column++) != 0;
  row.schedule = at.text(column++);
  if (row.kind > engine::Kind::kPool || row.stage > engine::Stage::kCanceled) {
    return brokenRow("stage");
  }
  return row;
}

Result<std::vector<JobRow>> readJobs(Statement& statement) {
  std::vector<JobRow> rows;
  Result<> whole;
  CAY_TRY(statement.each([&] {
    auto row = readJob(statement);
    if (row) {
      rows.push_back(*std::move(row));
    } else if (whole) {
      whole = std::unexpected(std::move(row).error());
    }
  }));
  CAY_TRY(whole);
  return rows;
}

Result<> writeLabels(Database& database, const JobRow& row) {
  CAY_ASSIGN(Statement* const remove, database.prepare("DELETE FROM job_labels WHERE seq = ?"));
  CAY_TRY(remove->bind(row.seq).run());
  for (const auto& [key, value] : row.labels) {
    CAY_ASSIGN(Statement* const add,
               database.prepare("INSERT INTO job_labels(seq, key, value) VALUES(?, ?, ?)"));
    CAY_TRY(add->bind(row.seq).bind(key).bind(value).run());
  }
  return {};
}

}  // namespace

Result<> insertJob(Database& database, const JobRow& row) {
  static const std::string kSql =
      "INSERT INTO jobs(" + std::string(kColumns) +
      ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  CAY_ASSIGN(Statement* const insert, database.prepare(kSql));
  insert->bind(row.seq).bind(row.id).bind(row.ns).bind(static_cast<int64_t>(row.kind));
  insert->bind(row.spec).bind(row.secrets).bind(pairsText(row.labels)).bind(exposeText(row));
  insert->bind(row.initiatorType).bind(row.initiatorId).bind(row.initiatorName);
  insert->bind(static_cast<int64_t>(row.stage)).bind(row.message).bind(row.image);
  insert->bind(textsText(row.notes)).bind(int64_t{row.attempt}).bind(row.createdMs);
  insert->bind(row.startedMs).bind(row.finishedMs).bind(int64_t{row.healthSeen});
  CAY_TRY(insert->bind(row.schedule).run());
  return writeLabels(database, row);
}

Result<> updateJob(Database& database, const JobRow& row) {
  CAY_ASSIGN(Statement* const update,
             database.prepare("UPDATE jobs SET labels = ?, expose = ?, stage = ?, message = ?, "
                              "image = ?, notes = ?, attempt = ?, started_ms = ?, finished_ms = ?, "
                              "health_seen = ? WHERE seq = ? AND id = ?"));
  update->bind(pairsText(row.labels)).bind(exposeText(row)).bind(static_cast<int64_t>(row.stage));
  update->bind(row.message).bind(row.image).bind(textsText(row.notes)).bind(int64_t{row.attempt});
  update->bind(row.startedMs).bind(row.finishedMs).bind(int64_t{row.healthSeen});
  CAY_TRY(update->bind(row.seq).bind(row.id).run());
  if (database.changed() == 0) return fail(Code::kNotFound, "no job " + quoted(row.id));
  return writeLabels(database, row);
}

Result<JobRow> findJob(Database& database, const std::string& id) {
  static const std::string kSql = "SELECT " + std::string(kColumns) + " FROM jobs WHERE id = ?";
  CAY_ASSIGN(Statement* const find, database.prepare(kSql));
  CAY_ASSIGN(auto rows, readJobs(find->bind(id)));
  if (rows.empty()) return fail(Code::kNotFound, "no job " + quoted(id));
  return std::move(rows.front());
}

Result<std::vector<JobRow>> listJobs(Database& database, const JobFilter& filter) {
  // A text of its own for each number of labels: not as many as a client likes.
  constexpr size_t kMostLabels = 64;
  if (filter.labels.size() > kMostLabels) {
    return fail(Code::kInvalid,
                "jobs can be listed by at most " + std::to_string(kMostLabels) + " labels");
  }
  std::string sql = "SELECT " + std::string(kColumns) +
                    " FROM jobs WHERE ns = ? AND seq < ? AND (? >> stage) & 1";
  for (size_t i = 0; i < filter.labels.size(); ++i) {
    sql +=
        " AND EXISTS (SELECT 1 FROM job_labels l WHERE l.key = ? AND l.value = ? AND "
        "l.seq = jobs.seq)";
  }
  sql += " ORDER BY seq DESC LIMIT ?";
  int64_t stages = filter.stages.empty() ? -1 : 0;
  for (const engine::Stage stage : filter.stages) stages |= int64_t{1} << static_cast<int>(stage);
  CAY_ASSIGN(Statement* const list, database.prepare(sql));
  list->bind(filter.ns).bind(filter.beforeSeq).bind(stages);
  for (const auto& [key, value] : filter.labels) list->bind(key).bind(value);
  return readJobs(list->bind(int64_t{filter.limit}));
}

Result<std::vector<JobRow>> liveJobs(Database& database) {
  static const std::string kSql =
      "SELECT " + std::string(kColumns) + " FROM jobs WHERE stage < 2 ORDER BY seq";
  CAY_ASSIGN(Statement* const live, database.prepare(kSql));
  return readJobs(*live);
}

Result<int64_t> lastJobSeq(Database& database) {
  return database.askNumber("SELECT seq FROM sqlite_sequence WHERE name = 'jobs'");
}

Result<std::vector<std::string>> forgetEndedJobs(Database& database, int64_t beforeMs,
                                                 uint64_t keep) {
  CAY_ASSIGN(Statement* const remove,
             database.prepare("DELETE FROM jobs WHERE stage >= 2 AND (finished_ms < ? OR seq IN "
                              "(SELECT seq FROM jobs WHERE stage >= 2 ORDER BY finished_ms DESC, "
                              "seq DESC LIMIT -1 OFFSET ?)) RETURNING id"));
  std::vector<std::string> ids;
  const auto most = static_cast<int64_t>(std::min<uint64_t>(keep, INT64_MAX));
  CAY_TRY(remove->bind(beforeMs).bind(most).each([&] { ids.push_back(remove->text(0)); }));
  return ids;
}

}  // namespace cay::hub
