#include "base/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace cay::json {
namespace {

void appendUnicodeEscape(std::string& out, uint32_t unit) {
  static constexpr char kHex[] = "0123456789abcdef";
  out.append({'\\', 'u', kHex[unit >> 12 & 15], kHex[unit >> 8 & 15], kHex[unit >> 4 & 15],
              kHex[unit & 15]});
}

// Appends the character that starts at text[at], which is not ASCII, and returns its length.
size_t appendUnicode(std::string& out, std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) & 0x3FU : 0U;
  };
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead >= 0xF0) {
    const uint32_t point = (lead & 7U) << 18 | byte(1) << 12 | byte(2) << 6 | byte(3);
    appendUnicodeEscape(out, 0xD800 + ((point - 0x10000) >> 10));
    appendUnicodeEscape(out, 0xDC00 + ((point - 0x10000) & 0x3FF));
    return 4;
  }
  if (lead >= 0xE0) {
    appendUnicodeEscape(out, (lead & 15U) << 12 | byte(1) << 6 | byte(2));
    return 3;
  }
  appendUnicodeEscape(out, (lead & 31U) << 6 | byte(1));
  return 2;
}

// The shortest text that reads back as the same number. By snprintf, since std::to_chars of a
// double brings 130 KB of tables along.
std::string doubleText(double number) {
  char text[64];
  for (int digits = 1; digits <= 17; ++digits) {
    (void)std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  return text;
}

// Appends the character at text[at], which cannot stand for itself, and returns its length.
size_t appendEscapedCharacter(std::string& out, std::string_view text, size_t at) {
  const char c = text[at];
  if (static_cast<unsigned char>(c) >= 0x80) return appendUnicode(out, text, at);
  switch (c) {
    case '"':
      out.append("\\\"");
      break;
    case '\\':
      out.append("\\\\");
      break;
    case '\n':
      out.append("\\n");
      break;
    case '\t':
      out.append("\\t");
      break;
    case '\r':
      out.append("\\r");
      break;
    default:
      appendUnicodeEscape(out, static_cast<unsigned char>(c));
  }
  return 1;
}

constexpr auto kStandsForItself = [] {
  std::array<bool, 256> table{};
  for (int c = 0x20; c < 0x7F; ++c) table[static_cast<size_t>(c)] = c != '"' && c != '\\';
  return table;
}();

bool isAscii(char c) {
  return (static_cast<unsigned char>(c) & 0x80) == 0;
}

// A number too large for a double is read as infinity, which JSON has no words for.
bool isFinite(const Value& value) {
  if (value.is_double()) return std::isfinite(value.get_double());
  if (value.is_array()) return std::ranges::all_of(value.get_array(), isFinite);
  if (!value.is_object()) return true;
  return std::ranges::all_of(value.get_object(),
                             [](const auto& member) { return isFinite(member.value()); });
}

}  // namespace

Result<Value> parse(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 64;
  boost::json::stream_parser parser({}, options);
  boost::system::error_code error;
  size_t used = parser.write_some(text.data(), text.size(), error);
  if (!error && used < text.size()) error = boost::json::error::extra_data;
  if (!error) parser.finish(error);
  if (!error) {
    Value value = parser.release();
    if (!isFinite(value)) return fail(Code::kInvalid, "bad JSON: a number is too large");
    return value;
  }
  used = std::min(used, text.size());
  size_t line = 1;
  size_t column = 1;
  for (char c : text.substr(0, used)) {
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
  }
  return fail(Code::kInvalid, "bad JSON at line " + std::to_string(line) + ", column " +
                                  std::to_string(column) + ": " + error.message());
}

std::string serialize(const Value& value) {
  const std::string raw = boost::json::serialize(value);
  std::string out;
  out.reserve(raw.size());
  for (size_t i = 0; i < raw.size();) {
    if (raw[i] == 0x7F) {
      appendUnicodeEscape(out, 0x7F);
      ++i;
    } else if (isAscii(raw[i])) {
      out.push_back(raw[i++]);
    } else {
      i += appendUnicode(out, raw, i);
    }
  }
  return out;
}

void appendString(std::string& out, std::string_view utf8) {
  out.push_back('"');
  size_t plain = 0;  // where the run of characters begins that stand for themselves
  for (size_t i = 0; i < utf8.size();) {
    if (kStandsForItself[static_cast<unsigned char>(utf8[i])]) {
      ++i;
      continue;
    }
    out.append(utf8, plain, i - plain);
    i = std::min(i + appendEscapedCharacter(out, utf8, i), utf8.size());
    plain = i;
  }
  out.append(utf8, plain);
  out.push_back('"');
}

Result<std::string> scalarText(const Value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      return std::string();
    case boost::json::kind::bool_:
      return std::string(value.get_bool() ? "true" : "false");
    case boost::json::kind::string:
      return std::string(value.get_string());
    case boost::json::kind::int64:
      return std::to_string(value.get_int64());
    case boost::json::kind::uint64:
      return std::to_string(value.get_uint64());
    case boost::json::kind::double_:
      return doubleText(value.get_double());
    default:
      return fail(Code::kInvalid, "a string, number or boolean is expected");
  }
}

}  // namespace cay::json
