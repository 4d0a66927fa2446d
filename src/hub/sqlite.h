// SQLite behind one door: statements with values in and out, failures as Errors. Blocking; a
// Database and its statements belong to one thread at a time.
//
// A full disk is kExhausted with ENOSPC, a lock that others keep too long kExhausted with EAGAIN, a
// broken constraint kConflict.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"

struct sqlite3;
struct sqlite3_stmt;

namespace cay::hub {

class Statement {
 public:
  // The next parameter, from the first one on.
  Statement& bind(std::string_view text);
  Statement& bind(int64_t number);

  // For a statement that gives no rows.
  Result<> run();
  // Calls `row()` for each row, whose columns can then be read.
  template <typename Row>
  Result<> each(Row row) {
    // Left in the middle, a statement would keep its view of the database open.
    const Reset atEnd(*this);
    while (true) {
      CAY_ASSIGN(const bool more, step());
      if (!more) return {};
      row();
    }
  }
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] int64_t number(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  class Reset {
   public:
    explicit Reset(Statement& statement) : statement_(statement) {}
    ~Reset() { statement_.reset(); }
    Reset(const Reset&) = delete;
    Reset& operator=(const Reset&) = delete;

   private:
    Statement& statement_;
  };

  explicit Statement(sqlite3_stmt* raw) : raw_(raw) {}
  // True if there is a row.
  Result<bool> step();
  void reset();

  std::unique_ptr<sqlite3_stmt, Finalize> raw_;
  int bound_ = 0;
};

class Database {
 public:
  // Makes the file, for its owner only, if it is missing.
  static Result<Database> open(const std::string& file);

  // Any number of statements without parameters and rows.
  Result<> execute(const char* sql);
  // Ready for its first parameter. Kept for the next time, so two users of one text must not
  // overlap.
  Result<Statement*> prepare(const std::string& sql);
  // The first column of the first row of a query that has one.
  Result<int64_t> askNumber(const std::string& sql);

  // Rows that the last statement changed.
  [[nodiscard]] int64_t changed() const;
  [[nodiscard]] bool inTransaction() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  explicit Database(sqlite3* raw) : raw_(raw) {}

  std::unique_ptr<sqlite3, Close> raw_;
  std::map<std::string, Statement> prepared_;
};

}  // namespace cay::hub
