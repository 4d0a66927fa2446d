// A message body taken from a wire by its framing: the common part of the server's requests and the
// client's answers.
#pragma once

#include <optional>
#include <span>

#include "base/error.h"
#include "net/chunked_decoder.h"
#include "net/framing.h"
#include "net/wire.h"

namespace cay::net {

class BodyReader {
 public:
  BodyReader(Wire& wire, const BodyFraming& body);

  // At most buffer.size() bytes; 0 is the end. kInvalid: broken coding; kClosed: no more bytes
  // come.
  Task<Result<size_t>> read(std::span<char> buffer);
  [[nodiscard]] bool complete() const { return complete_; }
  // Complete with the body.
  [[nodiscard]] const Fields& trailers() const;
  // Throws the rest away if all of it has been received already; gives complete(). The body is over
  // then, either way.
  bool dropReceivedRest();

 private:
  Task<Result<size_t>> readPlain(std::span<char> buffer);
  Task<Result<size_t>> readChunked(std::span<char> buffer);

  Wire& wire_;
  Framing framing_;
  uint64_t left_;  // with a length
  std::optional<ChunkedDecoder> decoder_;
  bool complete_;
};

}  // namespace cay::net
