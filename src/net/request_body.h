// The body of the request that a connection is serving (Body of handler.h).
#pragma once

#include <optional>

#include "net/body_reader.h"
#include "net/handler.h"
#include "net/wire.h"

namespace cay::net {

class RequestBody final : public Body {
 public:
  RequestBody(const RequestHead& head, Wire& wire, Deadline& deadline, Millis timeout);

  Task<Result<size_t>> read(std::span<char> buffer) override;
  [[nodiscard]] const Fields& trailers() const override { return reader_.trailers(); }

  [[nodiscard]] bool complete() const { return reader_.complete(); }
  // Throws the rest away if all of it has been received already; gives complete().
  bool dropReceivedRest() { return failed_ ? complete() : reader_.dropReceivedRest(); }
  // The final answer is under way: no "100 Continue" any more, and the client may take its time.
  void answerBegun();

 private:
  Wire& wire_;
  Deadline& deadline_;
  std::optional<Millis> timeout_;
  bool continueDue_;
  BodyReader reader_;
  bool failed_ = false;
};

}  // namespace cay::net
