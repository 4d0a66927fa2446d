// Keeps many connections busy with one and the same request, from one thread.
#pragma once

#include <cstdint>
#include <string>

namespace cay::bench {

struct Flood {
  uint16_t port = 0;
  std::string request;
  int connections = 48;
  double seconds = 1;
};

// Answers per second. Every answer must have as many bytes as the first one.
double answersPerSecond(const Flood& flood);

}  // namespace cay::bench
