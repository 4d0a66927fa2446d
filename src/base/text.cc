#include "base/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace cay {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What the bytes at the front of `s` are: a whole character (length > 0, valid), a broken part to
// replace (length > 0, invalid), or the beginning of a character whose rest has not come yet
// (length 0).
struct Unit {
  size_t length;
  bool valid;
};

Unit nextUnit(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, true};
  size_t need;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;  // bounds of the second byte exclude overlong forms and surrogates
  if (lead >= 0xC2 && lead <= 0xDF) {
    need = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    need = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    need = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {1, false};
  }
  for (size_t i = 1; i < need; ++i) {
    if (i >= s.size()) return {0, false};
    if (byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {need, true};
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Utf8Decoder::feed(std::string_view bytes, std::string& out) {
  std::string joined;
  if (!pending_.empty()) {
    joined = std::move(pending_);
    pending_.clear();
    joined.append(bytes);
    bytes = joined;
  }
  size_t at = 0;
  while (at < bytes.size()) {
    const size_t ascii = static_cast<size_t>(
        std::find_if(bytes.begin() + static_cast<ptrdiff_t>(at), bytes.end(),
                     [](char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }) -
        bytes.begin());
    out.append(bytes.substr(at, ascii - at));
    at = ascii;
    if (at == bytes.size()) break;
    const Unit unit = nextUnit(bytes.substr(at));
    if (unit.length == 0) {
      pending_.assign(bytes.substr(at));
      break;
    }
    out.append(unit.valid ? bytes.substr(at, unit.length) : kReplacement);
    at += unit.length;
  }
}

void Utf8Decoder::flush(std::string& out) {
  if (!pending_.empty()) out.append(kReplacement);
  pending_.clear();
}

std::string toValidUtf8(std::string_view text) {
  std::string out;
  Utf8Decoder decoder;
  decoder.feed(text, out);
  decoder.flush(out);
  return out;
}

bool isValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const Unit unit = nextUnit(text);
    if (!unit.valid) return false;
    text.remove_prefix(unit.length);
  }
  return true;
}

std::optional<std::string> percentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hexDigit(text[i + 1]);
    const int low = hexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

std::string percentEncode(std::string_view text, std::string_view keep) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x80 && std::isalnum(byte) != 0) || c == '-' || c == '.' || c == '_' || c == '~' ||
        keep.contains(c)) {
      out.push_back(c);
    } else {
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

std::string base64Encode(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < have ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    out.push_back(kAlphabet[group >> 18]);
    out.push_back(kAlphabet[group >> 12 & 63]);
    out.push_back(have > 1 ? kAlphabet[group >> 6 & 63] : '=');
    out.push_back(have > 2 ? kAlphabet[group & 63] : '=');
  }
  return out;
}

std::optional<uint64_t> parseUint(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<int64_t> parseDurationMs(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string number(text.substr(0, digits));
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
  const std::string_view unit = text.substr(digits);
  double factor;
  if (unit.empty() || unit == "s") {
    factor = 1e3;
  } else if (unit == "ms") {
    factor = 1;
  } else if (unit == "m") {
    factor = 60e3;
  } else if (unit == "h") {
    factor = 3600e3;
  } else if (unit == "d") {
    factor = 86400e3;
  } else {
    return std::nullopt;
  }
  const double ms = value * factor;
  if (ms > 1e15) return std::nullopt;
  return static_cast<int64_t>(ms);
}

std::string quoted(std::string_view text, size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\') {
      out.push_back(c);
    } else if (c == '\'' || c == '\\') {
      out.append({'\\', c});
    } else {
      out.append({'\\', 'x', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  out.append(text.size() > limit ? "'..." : "'");
  return out;
}

bool equalIgnoreCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) {
    const auto lower = [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; };
    return lower(x) == lower(y);
  });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> out;
  while (true) {
    const size_t end = text.find(at);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<std::string_view> out;
  for (size_t at = text.find_first_not_of(kSpace); at != std::string_view::npos;
       at = text.find_first_not_of(kSpace, at)) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace cay
