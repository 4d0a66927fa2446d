#include "net/field_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "net/framing.h"
#include "net/status.h"

namespace cay::net {
namespace {

bool isTokenChar(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kMarks.find(c) != std::string_view::npos;
}

bool isValueChar(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || byte == '\t';
}

}  // namespace

bool isFieldName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, isTokenChar);
}

bool isFieldValue(std::string_view value) {
  return std::ranges::all_of(value, isValueChar);
}

void appendStatusLine(std::string& out, int status) {
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(1, ' ');
  out.append(reasonPhrase(status)).append("\r\n");
}

void appendField(std::string& out, const Field& field) {
  out.append(field.name).append(": ").append(field.value).append("\r\n");
}

void appendFields(std::string& out, const Fields& fields) {
  for (const Field& field : fields) appendField(out, field);
}

void appendTrailers(std::string& out, const Fields& trailers) {
  for (const Field& field : trailers) {
    if (isForbiddenTrailer(field.name)) continue;
    if (isFieldName(field.name) && isFieldValue(field.value)) appendField(out, field);
  }
}

void appendChunkSize(std::string& out, uint64_t size) {
  char digits[16];
  const auto [end, error] = std::to_chars(std::begin(digits), std::end(digits), size, 16);
  out.append(digits, end).append("\r\n");
}

}  // namespace cay::net
