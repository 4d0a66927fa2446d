// Measures cay-host in host mode, with many sandboxes, beside bare loops in one run and prints a
// table.
#include <array>

#include "program.h"

int main(int argc, char** argv) {
  using cay::bench::Measurement;
  using cay::bench::Number;
  using cay::bench::Settings;
  constexpr std::array kMeasurements = {
      Measurement{"latency", cay::bench::measurePoolLatency},
      Measurement{"rate", cay::bench::measurePoolRate},
      Measurement{"cycle", cay::bench::measurePoolCycles},
      Measurement{"held", cay::bench::measurePoolHeld},
  };
  constexpr std::array kNumbers = {
      Number{"--held", &Settings::held},
      Number{"--kept", &Settings::kept},
  };
  return cay::bench::runProgram(kMeasurements, kNumbers, argc, argv);
}
