// JSON behind one door: Boost.JSON values, parse errors that say where, and ASCII-only output.
//
// Output is ASCII because clients split streams into lines by Unicode rules: a raw U+2028 in a
// string would cut a JSON object in two.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace cay::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using String = boost::json::string;

// Parses one whole document; the error names line and column. Depth is bounded.
Result<Value> parse(std::string_view text);

// Compact and ASCII-only. Strings in `value` must be valid UTF-8 (see toValidUtf8).
std::string serialize(const Value& value);

// Appends `utf8` as a quoted, ASCII-only JSON string.
void appendString(std::string& out, std::string_view utf8);

// A scalar as the text a shell would want: true, 1, 1.5, the string itself; "" for null. Fails for
// objects and arrays.
Result<std::string> scalarText(const Value& value);

}  // namespace cay::json
