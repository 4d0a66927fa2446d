// Deadlines of connections, watched by one coarse timer per server instead of a timer each.
//
// Precision is the sweep's interval (a second, less with short limits). Everything runs on the
// loop's thread.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "net/event.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::net {

class Deadline;

class DeadlineSweep : public std::enable_shared_from_this<DeadlineSweep> {
 public:
  DeadlineSweep(const Executor& executor, Millis interval)
      : timer_(executor), interval_(interval) {}

 private:
  friend class Deadline;

  void add(Deadline& deadline);
  void remove(Deadline& deadline);
  void schedule();
  void sweep();

  Timer timer_;
  Millis interval_;
  bool scheduled_ = false;
  std::vector<Deadline*> deadlines_;
};

// When it passes, expired() is true and every operation of the socket is cancelled, until it is
// disarmed or armed anew.
class Deadline {
 public:
  Deadline(std::shared_ptr<DeadlineSweep> sweep, Socket& socket);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void arm(Millis delay) { at_ = monotonicMs() + delay.count(); }
  // expired() stays as it is.
  void disarm() { at_ = kNever; }
  void expireNow();
  [[nodiscard]] bool expired() const { return expired_; }
  // Disarmed and as if it had never expired.
  void reset() {
    at_ = kNever;
    expired_ = false;
  }

 private:
  friend class DeadlineSweep;
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  std::shared_ptr<DeadlineSweep> sweep_;
  Socket& socket_;
  size_t index_ = 0;  // in sweep_->deadlines_
  int64_t at_ = kNever;
  bool expired_ = false;
};

}  // namespace cay::net
