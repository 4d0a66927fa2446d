// How long something took, many times over.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace cay::bench {

using Clock = std::chrono::steady_clock;

inline double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Samples {
 public:
  void add(double value) { values_.push_back(value); }
  void add(const Samples& other) {
    values_.insert(values_.end(), other.values_.begin(), other.values_.end());
  }
  // Calls `work` and adds how many milliseconds it took.
  template <typename Work>
  void time(Work&& work) {
    const auto start = Clock::now();
    work();
    add(secondsSince(start) * 1e3);
  }

  // The smallest value that `percent` of all values do not exceed.
  [[nodiscard]] double percentile(double percent) const {
    std::vector<double> sorted = values_;
    std::ranges::sort(sorted);
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * sorted.size()));
    return sorted.at(std::max<size_t>(rank, 1) - 1);
  }
  [[nodiscard]] double median() const { return percentile(50); }

 private:
  std::vector<double> values_;
};

}  // namespace cay::bench
