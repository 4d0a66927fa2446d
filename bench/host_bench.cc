// Measures a dedicated cay-host beside bare loops in one run and prints a table.
#include <array>

#include "program.h"

int main(int argc, char** argv) {
  using cay::bench::Measurement;
  constexpr std::array kMeasurements = {
      Measurement{"exec", cay::bench::measureRoundTrips},
      Measurement{"throughput", cay::bench::measureCommandsPerSecond},
      Measurement{"files", cay::bench::measureFiles},
      Measurement{"health", cay::bench::measureHealth},
      Measurement{"start", cay::bench::measureStart},
      Measurement{"memory", cay::bench::measureMemory},
      Measurement{"size", cay::bench::measureSize},
  };
  return cay::bench::runProgram(kMeasurements, {}, argc, argv);
}
