#include "hub/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>

#include "sys/file.h"

namespace cay::hub {
namespace {

constexpr int kBusyMs = 5000;

Error sqliteError(sqlite3* database, std::string_view doing) {
  const int code = sqlite3_extended_errcode(database);
  const int primary = code & 0xff;
  const int system = sqlite3_system_errno(database);
  std::string message(doing);
  message.append(": ").append(sqlite3_errmsg(database));
  if (primary == SQLITE_FULL ||
      (primary == SQLITE_IOERR && (system == ENOSPC || system == EDQUOT))) {
    return {Code::kExhausted, ENOSPC, std::move(message)};
  }
  switch (primary) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Code::kExhausted, EAGAIN, std::move(message)};
    case SQLITE_NOMEM:
      return {Code::kExhausted, ENOMEM, std::move(message)};
    case SQLITE_CONSTRAINT:
      return {Code::kConflict, 0, std::move(message)};
    default:
      return {Code::kInternal, system, std::move(message)};
  }
}

std::unexpected<Error> failSqlite(sqlite3* database, std::string_view doing) {
  return std::unexpected<Error>(sqliteError(database, doing));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

// A failed bind (out of memory, too long a text) leaves NULL, which no column of ours takes.
Statement& Statement::bind(std::string_view text) {
  // An empty view may have no address, which SQLite would take for NULL.
  sqlite3_bind_text64(raw_.get(), ++bound_, text.empty() ? "" : text.data(), text.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int64_t number) {
  sqlite3_bind_int64(raw_.get(), ++bound_, number);
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(raw_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return failSqlite(sqlite3_db_handle(raw_.get()), "the hub's database");
}

Result<> Statement::run() {
  return each([] {});
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(raw_.get(), column));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<size_t>(sqlite3_column_bytes(raw_.get(), column))};
}

int64_t Statement::number(int column) const {
  return sqlite3_column_int64(raw_.get(), column);
}

void Statement::reset() {
  sqlite3_reset(raw_.get());
  sqlite3_clear_bindings(raw_.get());
  bound_ = 0;
}

Result<Database> Database::open(const std::string& file) {
  // SQLite itself would make it readable for everybody; its other files get the mode of this one.
  CAY_ASSIGN(const Fd made,
             sys::openAt(AT_FDCWD, file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  CAY_TRY(sys::chmodFd(made.get(), 0600));
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
  const int code = sqlite3_open_v2(file.c_str(), &raw, flags, nullptr);
  if (raw == nullptr) return fail(Code::kExhausted, "open '" + file + "': no memory");
  Database database(raw);
  if (code != SQLITE_OK) return failSqlite(raw, "open '" + file + "'");
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyMs);
  return database;
}

Result<> Database::execute(const char* sql) {
  if (sqlite3_exec(raw_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return failSqlite(raw_.get(), "the hub's database");
}

Result<Statement*> Database::prepare(const std::string& sql) {
  auto found = prepared_.find(sql);
  if (found == prepared_.end()) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v3(raw_.get(), sql.data(), static_cast<int>(sql.size()),
                           SQLITE_PREPARE_PERSISTENT, &raw, nullptr) != SQLITE_OK) {
      return failSqlite(raw_.get(), "the hub's database");
    }
    found = prepared_.emplace(sql, Statement(raw)).first;
  }
  found->second.reset();
  return &found->second;
}

Result<int64_t> Database::askNumber(const std::string& sql) {
  CAY_ASSIGN(Statement* const statement, prepare(sql));
  int64_t number = 0;
  CAY_TRY(statement->each([&] { number = statement->number(0); }));
  return number;
}

int64_t Database::changed() const {
  return sqlite3_changes64(raw_.get());
}

bool Database::inTransaction() const {
  return sqlite3_get_autocommit(raw_.get()) == 0;
}

}  // namespace cay::hub
