// Which jobs may start now. Bookkeeping alone: no clock, no processes.
//
// First come, first served, among those that fit. One that does not fit is overtaken by others, but
// not for ever: after kMostOvertakes nobody behind it gets what it lacks.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/job.h"

namespace cay::engine {

class Queue {
 public:
  struct Capacity {
    uint64_t memoryBytes = 0;
    uint32_t gpus = 0;
    uint32_t starting = 1;  // at the same time
    uint32_t jobs = 1;      // starting and running
  };
  static constexpr uint32_t kMostOvertakes = 32;

  explicit Queue(const Capacity& capacity) : capacity_(capacity) {}

  // False if it could not start even if nothing else ran.
  [[nodiscard]] bool possible(const Resources& needs) const;
  // At the end of those that wait. The id must be new here, and the needs possible.
  void add(std::string id, const Resources& needs);
  // Found running after a restart; counts whether or not it fits.
  void claim(std::string id, const Resources& needs);
  // Those that may start now, which count as starting from here on.
  std::vector<std::string> admit();
  // It is no longer starting, but running.
  void started(std::string_view id);
  // It is over, wherever it was. Unknown ones are ignored.
  void remove(std::string_view id);

  struct Place {
    std::string_view id;
    size_t position = 0;       // from 1
    std::string_view lacking;  // for people: "memory", "GPUs", "its turn", …
  };
  // All that wait, in order. The texts are valid until the next change.
  [[nodiscard]] std::vector<Place> waiting() const;
  [[nodiscard]] std::optional<Place> place(std::string_view id) const;

 private:
  struct Waiting {
    std::string id;
    Resources needs;
    uint32_t overtaken = 0;
  };
  struct Taken {
    Resources needs;
    bool starting = false;
  };
  // What those that have been overtaken too often keep others from.
  struct Held {
    bool memory = false;
    bool gpus = false;
  };

  void take(std::string id, const Resources& needs, bool starting);
  [[nodiscard]] bool lacksMemory(const Resources& needs) const;
  [[nodiscard]] bool lacksGpus(const Resources& needs) const;
  [[nodiscard]] std::string_view lackOf(const Resources& needs, const Held& held) const;
  void holdFor(const Waiting& job, Held& held) const;

  Capacity capacity_;
  std::list<Waiting> waiting_;
  std::map<std::string, Taken, std::less<>> taken_;
  uint64_t usedMemory_ = 0;
  uint32_t usedGpus_ = 0;
  uint32_t starting_ = 0;
};

}  // namespace cay::engine
