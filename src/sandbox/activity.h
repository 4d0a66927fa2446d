// Whether a sandbox is in use. Pure bookkeeping: the time is passed in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cay::sandbox {

class Activity {
 public:
  explicit Activity(int64_t now) : quietSince_(now) {}

  // A request in progress, however long: stamps its beginning and its end.
  class InUse {
   public:
    InUse(Activity& activity, int64_t (*clock)()) : activity_(activity), clock_(clock) {
      ++activity_.users_;
    }
    ~InUse() {
      --activity_.users_;
      activity_.quietSince_ = clock_();
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

   private:
    Activity& activity_;
    int64_t (*clock_)();
  };

  [[nodiscard]] bool inUse() const { return users_ > 0; }

  // How long nothing has happened. `running`: processes that count as use; while there are any, the
  // quiet begins anew.
  int64_t quietMs(int64_t now, size_t running) {
    if (users_ > 0 || running > 0) quietSince_ = now;
    return now - quietSince_;
  }

 private:
  size_t users_ = 0;
  int64_t quietSince_;
};

}  // namespace cay::sandbox
