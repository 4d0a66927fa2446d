// Reading the arguments of verbs, by CLI11: what our verbs have in common.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace cay::cli {

// What is to be done once all arguments are known to be good. A verb puts it where it is told to.
using Action = std::function<Result<>()>;

// An option whose value `read` understands. What it fails with is what a value should have been:
// "a number from 0 to 65535".
template <typename T, typename Read>
CLI::Option* addOption(CLI::App& verb, const std::string& name, T& value, Read read,
                       const std::string& help) {
  return verb.add_option_function<std::string>(
      name,
      [&value, read, name](const std::string& text) {
        auto got = read(text);
        if (!got) {
          throw CLI::ValidationError(name, cay::quoted(text) + " is not " + got.error().message);
        }
        value = *std::move(got);
      },
      help);
}

Result<uint64_t> readNumber(std::string_view text, uint64_t low, uint64_t high);
Result<uint16_t> readPort(std::string_view text);

// --state, which every verb has.
void addState(CLI::App& verb, std::string& state);

}  // namespace cay::cli
