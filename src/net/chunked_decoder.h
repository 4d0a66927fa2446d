// Takes the chunked transfer coding off a body that arrives in pieces, for requests and responses
// alike. No I/O and no Boost in this header.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "net/http.h"

namespace cay::net {

class ChunkedDecoder {
 public:
  // A chunk's size line, or the whole trailer part, may have this many bytes; the caller must be
  // able to keep as many that were not consumed.
  static constexpr size_t kMaxControlBytes = size_t{16} * 1024;

  ChunkedDecoder();
  ~ChunkedDecoder();

  struct Step {
    size_t consumed = 0;  // of `in`
    size_t produced = 0;  // in `out`
  };
  // Decodes as much as fits. No progress means that more input is needed; the unconsumed part must
  // then be given again with more behind it. kInvalid: broken coding, final.
  Result<Step> decode(std::string_view in, std::span<char> out);

  [[nodiscard]] bool done() const;
  // Complete once done(); without those that a trailer may not carry.
  [[nodiscard]] const Fields& trailers() const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
  std::optional<Error> failure_;
};

}  // namespace cay::net
