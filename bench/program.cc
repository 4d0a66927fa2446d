#include "program.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace cay::bench {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

struct Options {
  Settings settings;
  std::vector<std::string> names;  // empty: all
};

std::optional<Options> readArguments(std::span<const Measurement> measurements,
                                     std::span<const Number> numbers,
                                     std::span<char* const> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    const auto number = std::ranges::find(numbers, argument, &Number::flag);
    if (argument == "--quick") {
      options.settings.quick = true;
    } else if (argument == "--host" && i + 1 < arguments.size()) {
      options.settings.host = arguments[++i];
    } else if (number != numbers.end() && i + 1 < arguments.size()) {
      const auto value = parseUint(arguments[++i]);
      if (!value) return std::nullopt;
      options.settings.*number->value = *value;
    } else if (std::ranges::count(measurements, argument, &Measurement::name) > 0) {
      options.names.push_back(argument);
    } else {
      return std::nullopt;
    }
  }
  return options;
}

void printUsage(const std::string& program, std::span<const Measurement> measurements,
                std::span<const Number> numbers) {
  std::string text = "usage: " + program + " [--quick] [--host PATH]";
  for (const Number& number : numbers) text.append(" [").append(number.flag).append(" NUMBER]");
  text += " [";
  for (const Measurement& measurement : measurements) text.append(measurement.name).append("|");
  text.back() = ']';
  (void)std::fprintf(stderr, "%s...\n", text.c_str());
}

void measureAll(std::span<const Measurement> measurements, const Options& options) {
  Report report;
  for (const auto& [name, measure] : measurements) {
    if (options.names.empty() || std::ranges::count(options.names, name) > 0) {
      measure(options.settings, report);
    }
  }
  report.print();
  std::printf("\n%zu of the targets missed\n", report.misses());
}

}  // namespace

int runProgram(std::span<const Measurement> measurements, std::span<const Number> numbers, int argc,
               char** argv) {
  std::string name;
  try {
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
    name = self.filename();
    auto options = readArguments(measurements, numbers, {argv + 1, argv + argc});
    if (!options) {
      printUsage(name, measurements, numbers);
      return kExitUsage;
    }
    if (options->settings.host.empty()) {
      options->settings.host = std::filesystem::path(self).replace_filename("cay-host");
    }
    measureAll(measurements, *options);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    return kExitFailure;
  }
  return 0;
}

}  // namespace cay::bench
