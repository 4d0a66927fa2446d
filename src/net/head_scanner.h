// Finds the end of a message head and refuses, line by line, what parsers are known to read
// differently.
//
// The whole head has to be in one piece before anything is parsed, so its meaning cannot depend on
// how the network cut it. No parsing happens here: see head_parser.h.
#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace cay::net {

// Why a head is refused, as the answer that says so.
struct HeadError {
  int status = 400;
  std::string message;
};

class HeadScanner {
 public:
  explicit HeadScanner(size_t maxBytes) : maxBytes_(maxBytes) {}

  // `bytes` begins with the head and holds at least what the last call saw. Gives the size of the
  // head with its closing empty line, or 0 while that line is missing.
  std::expected<size_t, HeadError> scan(std::string_view bytes);
  // Where the start line begins: after one empty line that some clients send between two requests.
  [[nodiscard]] size_t start() const { return start_; }
  void reset() { *this = HeadScanner(maxBytes_); }

 private:
  size_t maxBytes_;
  size_t start_ = 0;
  size_t lineStart_ = 0;
  size_t searched_ = 0;
  size_t lines_ = 0;
};

}  // namespace cay::net
