// Request and response heads from bytes: scanned whole (head_scanner.h), split into fields by
// Beast's parser, then judged (framing.h). Feed bytes, get values; no I/O and no Boost in this
// header.
#pragma once

#include <expected>
#include <string_view>

#include "net/framing.h"
#include "net/head_scanner.h"
#include "net/http.h"

namespace cay::net {

class RequestParser {
 public:
  explicit RequestParser(size_t maxHeadBytes, Connects connects = Connects::kRefused)
      : scanner_(maxHeadBytes), connects_(connects) {}

  // `bytes` begins with the head and holds at least what the last call saw. Gives 0 while the head
  // is incomplete; then its size, fills `head`, and is ready for the next one. An error is final.
  std::expected<size_t, HeadError> parse(std::string_view bytes, RequestHead& head);

 private:
  HeadScanner scanner_;
  Connects connects_;
};

struct ResponseStart {
  ResponseHead head;
  int minorVersion = 1;
  BodyFraming body;
};

class ResponseParser {
 public:
  explicit ResponseParser(size_t maxHeadBytes) : scanner_(maxHeadBytes) {}

  // As above. `toHead`: the answer to a HEAD request, which has no body whatever it says.
  std::expected<size_t, HeadError> parse(std::string_view bytes, bool toHead, ResponseStart& start);

 private:
  HeadScanner scanner_;
};

}  // namespace cay::net
