// Reads one exec's output in order, never beyond what the keeper has told, and holds the keeper
// back so that nothing is overwritten unread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "net/task.h"
#include "sandbox/known_exec.h"
#include "sandbox/output_log.h"

namespace cay::sandbox {

class Sandbox;

// Destroy it as soon as reading is over.
class Follower {
 public:
  // `listening`: counts as somebody who wants the exec to go on (OnDisconnect).
  Follower(Sandbox& sandbox, ExecPtr exec, Offsets from, bool listening);
  ~Follower();
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // For an exec that was there before: completes when it is known how far its output reaches now.
  // Call it before the first next().
  net::Task<> sync();

  struct Piece {
    StreamId stream;
    uint64_t from;
    std::string_view data;  // empty: a gap up to `to`; valid until the next call
    uint64_t to;
  };
  // The next piece that is there now; nullopt if none is.
  Result<std::optional<Piece>> next();
  // All that belongs before the exit event has been read.
  [[nodiscard]] bool atExit() const;
  // All that was there at sync() has been read.
  [[nodiscard]] bool pastSync() const;
  [[nodiscard]] const ExecPtr& exec() const { return exec_; }
  [[nodiscard]] const Offsets& at() const { return at_; }

 private:
  [[nodiscard]] uint64_t target(StreamId stream) const;

  Sandbox& sandbox_;
  ExecPtr exec_;
  Offsets at_;
  Offsets atSync_;  // totals when reading began
  uint64_t progressBefore_;
  bool listening_;
  std::optional<LogReader> log_;
  std::string buffer_;
};

}  // namespace cay::sandbox
