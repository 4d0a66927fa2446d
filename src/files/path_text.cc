#include "files/path_text.h"

#include <algorithm>

#include "base/text.h"

namespace cay::files {
namespace {

// The length of the character at the front of `bytes`, 0 if there is none.
size_t characterLength(std::string_view bytes) {
  for (size_t length = 1; length <= std::min<size_t>(4, bytes.size()); ++length) {
    if (isValidUtf8(bytes.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

std::string shown(std::string_view bytes) {
  if (isValidUtf8(bytes)) return std::string(bytes);
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  while (!bytes.empty()) {
    const size_t length = characterLength(bytes);
    if (length == 0 || bytes.front() == '%') {
      const auto byte = static_cast<unsigned char>(bytes.front());
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
      bytes.remove_prefix(1);
    } else {
      out.append(bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
  }
  return out;
}

std::string clamped(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part == "..") {
      out.resize(std::min(out.rfind('/'), out.size()));
    } else if (!part.empty() && part != ".") {
      out.append("/").append(part);
    }
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return out.empty() ? "/" : out;
}

std::optional<std::string> unshown(std::string_view text) {
  if (!text.contains('%')) return std::nullopt;
  std::optional<std::string> bytes = percentDecode(text);
  if (!bytes || isValidUtf8(*bytes) || shown(*bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace cay::files
