// Reading the fields of JSON bodies. Errors are kInvalid and name the field and what is wrong with
// it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace cay::host {

std::unexpected<Error> wrong(std::string_view field, std::string_view what);
// The same with the value that came: "'pids' must be …, not -1".
std::unexpected<Error> wrongValue(std::string_view field, std::string_view mustBe,
                                  const json::Value& value);

// The body as an object; empty text is one without fields if `mayBeEmpty`.
Result<json::Object> bodyObject(std::string_view text, bool mayBeEmpty = false);

// The field if it is there and not null.
const json::Value* field(const json::Object& body, std::string_view name);

// Text without NUL characters.
Result<std::string> plainText(const json::Value& value, std::string_view name);

// A number from `low` to `high`; nullopt if the field is missing.
enum class Numbers { kWhole, kAny };
Result<std::optional<double>> number(const json::Object& body, std::string_view name, double low,
                                     double high, Numbers kind);

// Puts the variables of the field "env" on top of `env` (NAME=value); null takes one away.
Result<> readEnvironment(const json::Object& body, std::vector<std::string>& env);

}  // namespace cay::host
