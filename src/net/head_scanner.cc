#include "net/head_scanner.h"

#include <algorithm>

namespace cay::net {
namespace {

constexpr size_t kMaxFields = 256;

// Tabs are legal in field values only; the parser that follows refuses them elsewhere.
bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

std::unexpected<HeadError> refuse(int status, std::string_view message) {
  return std::unexpected(HeadError{status, std::string(message)});
}

}  // namespace

std::expected<size_t, HeadError> HeadScanner::scan(std::string_view bytes) {
  const std::string_view window = bytes.substr(0, maxBytes_);
  for (;;) {
    const size_t lineFeed = window.find('\n', searched_);
    if (lineFeed == std::string_view::npos) break;
    if (lineFeed == lineStart_ || window[lineFeed - 1] != '\r') {
      return refuse(400, "a line of the head does not end with CR LF");
    }
    const std::string_view line = window.substr(lineStart_, lineFeed - 1 - lineStart_);
    lineStart_ = searched_ = lineFeed + 1;
    if (line.empty()) {
      if (lines_ > 0) return lineStart_;
      if (start_ > 0) return refuse(400, "the start line is missing");
      start_ = lineStart_;
      continue;
    }
    if (std::ranges::any_of(line, isControl)) {
      return refuse(400, "the head contains a control character");
    }
    if (line.front() == ' ' || line.front() == '\t') {
      return refuse(400, "a line of the head begins with white space");
    }
    if (++lines_ > kMaxFields + 1) return refuse(431, "the head has too many header fields");
  }
  if (window.size() == maxBytes_) return refuse(431, "the head is too large");
  searched_ = window.size();
  return 0;
}

}  // namespace cay::net
