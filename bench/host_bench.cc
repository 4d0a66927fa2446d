// Measures cay-host beside bare loops in one run and prints a table. What misses its target says
// MISS; the exit status is 0 all the same, since a busy machine is no failure.
//
//   host_bench [--quick] [--host PATH] [NAME...]
//
// The host is the cay-host beside this program, and all measurements are made, unless told
// otherwise.
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "measure.h"

namespace {

using cay::bench::Report;
using cay::bench::Settings;

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
constexpr char kUsage[] =
    "usage: host_bench [--quick] [--host PATH] "
    "[exec|throughput|files|health|start|memory|size]...\n";

struct Measurement {
  std::string_view name;
  void (*measure)(const Settings&, Report&);
};
constexpr std::array kMeasurements = {
    Measurement{"exec", cay::bench::measureRoundTrips},
    Measurement{"throughput", cay::bench::measureCommandsPerSecond},
    Measurement{"files", cay::bench::measureFiles},
    Measurement{"health", cay::bench::measureHealth},
    Measurement{"start", cay::bench::measureStart},
    Measurement{"memory", cay::bench::measureMemory},
    Measurement{"size", cay::bench::measureSize},
};

struct Options {
  Settings settings;
  std::vector<std::string> names;  // empty: all
};

bool readArguments(const std::vector<std::string>& arguments, Options& options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--quick") {
      options.settings.quick = true;
    } else if (arguments[i] == "--host" && i + 1 < arguments.size()) {
      options.settings.host = arguments[++i];
    } else if (std::ranges::count(kMeasurements, arguments[i], &Measurement::name) > 0) {
      options.names.push_back(arguments[i]);
    } else {
      return false;
    }
  }
  return true;
}

void measureAll(const Options& options) {
  Report report;
  for (const auto& [name, measure] : kMeasurements) {
    if (options.names.empty() || std::ranges::count(options.names, name) > 0) {
      measure(options.settings, report);
    }
  }
  report.print();
  std::printf("\n%zu of the targets missed\n", report.misses());
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  try {
    options.settings.host =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("cay-host");
    if (!readArguments({argv + 1, argv + argc}, options)) {
      (void)std::fputs(kUsage, stderr);
      return kExitUsage;
    }
    measureAll(options);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "host_bench: %s\n", error.what());
    return kExitFailure;
  }
  return 0;
}
