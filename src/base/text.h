// Text: UTF-8, percent- and base64-encoding, numbers and durations, quoting for messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cay {

// Decodes a byte stream that arrives in pieces. What is not UTF-8 becomes U+FFFD, one for each
// maximal invalid part; a sequence cut by a piece's end is kept until the next piece or flush().
class Utf8Decoder {
 public:
  // Appends the valid UTF-8 that `bytes` completes.
  void feed(std::string_view bytes, std::string& out);
  // The stream is over: an unfinished sequence becomes U+FFFD.
  void flush(std::string& out);
  // Bytes taken in but not yet given out (0 to 3).
  [[nodiscard]] size_t pending() const { return pending_.size(); }

 private:
  std::string pending_;
};

// `text` with every invalid part replaced by U+FFFD.
std::string toValidUtf8(std::string_view text);
bool isValidUtf8(std::string_view text);

// Decodes %XX; nullopt where a % is not followed by two hex digits. "+" stays "+".
std::optional<std::string> percentDecode(std::string_view text);
// Escapes every byte that is not unreserved in a URL or in `keep`.
std::string percentEncode(std::string_view text, std::string_view keep = {});

std::string base64Encode(std::string_view bytes);

// Whole string, decimal digits only, no sign.
std::optional<uint64_t> parseUint(std::string_view text);
// "90", "90s", "10m", "1.5h", "2d" as milliseconds; nullopt for anything else, negative or absurd.
std::optional<int64_t> parseDurationMs(std::string_view text);

// 'text' in single quotes, control and non-ASCII bytes escaped, cut after `limit` bytes: safe in a
// log.
std::string quoted(std::string_view text, size_t limit = 200);

bool equalIgnoreCase(std::string_view a, std::string_view b);
std::string_view trim(std::string_view text);

// What is between spaces, tabs and line ends.
std::vector<std::string_view> words(std::string_view text);
// "a,b," as a, b and an empty text.
std::vector<std::string_view> split(std::string_view text, char at);

}  // namespace cay
