// A program that makes measurements and prints their table. What misses its target says MISS; the
// exit status is 0 all the same, since a busy machine is no failure.
//
//   NAME [--quick] [--host PATH] [--FLAG NUMBER]... [MEASUREMENT]...
//
// The host is the cay-host beside the program, and all measurements are made, unless told
// otherwise.
#pragma once

#include <span>
#include <string_view>

#include "measure.h"

namespace cay::bench {

struct Measurement {
  std::string_view name;
  void (*measure)(const Settings&, Report&);
};

// A number that the command line can change.
struct Number {
  std::string_view flag;
  size_t Settings::* value;
};

// Gives the exit status.
int runProgram(std::span<const Measurement> measurements, std::span<const Number> numbers, int argc,
               char** argv);

}  // namespace cay::bench
