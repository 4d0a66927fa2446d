// The same work in several threads at once.
#pragma once

#include <future>
#include <vector>

namespace cay::bench {

// Calls work() in `count` threads, waits for all, and adds up what they return. The first exception
// comes out here.
template <typename Work>
size_t inParallel(size_t count, const Work& work) {
  std::vector<std::future<size_t>> running;
  running.reserve(count);
  for (size_t i = 0; i < count; ++i) running.push_back(std::async(std::launch::async, work));
  size_t sum = 0;
  for (auto& one : running) sum += one.get();
  return sum;
}

}  // namespace cay::bench
