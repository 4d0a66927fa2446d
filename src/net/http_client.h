// One HTTP/1.1 request over a stream that somebody else dialled: the inner side of the port proxy.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "net/http.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::net {

class ClientExchange {
 public:
  // Takes the stream over; it carries this one exchange.
  static std::unique_ptr<ClientExchange> over(Stream stream);
  virtual ~ClientExchange() = default;

  // `framing` says how the body will be sent; its header fields must not be in `fields`.
  virtual Task<Result<>> sendHead(std::string_view method, std::string_view target,
                                  const Fields& fields, Framing framing,
                                  uint64_t contentLength) = 0;
  virtual Task<Result<>> sendBody(std::string_view data) = 0;
  virtual Task<Result<>> endBody(const Fields& trailers) = 0;

  // The final or 101 head; other 1xx are skipped. `toHead`: the answer has no body whatever it
  // says.
  virtual Task<Result<ResponseHead>> readHead(bool toHead) = 0;
  // 0 at the end; kClosed if the server broke off.
  virtual Task<Result<size_t>> readBody(std::span<char> buffer) = 0;
  [[nodiscard]] virtual const Fields& trailers() const = 0;
  // How the answer's body ends; a length, if it was announced.
  [[nodiscard]] virtual Framing framing() const = 0;
  [[nodiscard]] virtual uint64_t contentLength() const = 0;
  // After 101: the stream, with what has been read past the head.
  virtual Stream release() = 0;
};

}  // namespace cay::net
