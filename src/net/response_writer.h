// The answer to the request that a connection is serving (Response of handler.h).
#pragma once

#include <optional>
#include <string>

#include "net/handler.h"
#include "net/request_body.h"
#include "net/wire.h"

namespace cay::net {

class WorkerPool;

// What an answer needs of its connection; all of it outlives the writer.
struct AnswerContext {
  const RequestHead& request;
  RequestBody& body;
  Wire& wire;
  StallLimit stall;      // for an answer that goes out whole
  const bool& stopping;  // the server wants its connections back
  WorkerPool* workers;
  std::string& scratch;  // memory for heads, kept from answer to answer
};

class ResponseWriter final : public Response {
 public:
  explicit ResponseWriter(const AnswerContext& context) : at_(context) {}

  Result<> begin(ResponseHead head) override;
  Task<Result<>> write(std::string_view data) override;
  Task<Result<>> sendFile(int file, uint64_t offset, uint64_t length) override;
  Task<Result<>> finish(std::string_view last = {}) override;
  Task<Result<>> finishWithTrailers(const Fields& trailers) override;
  void abort() override { failed_ = true; }
  [[nodiscard]] bool begun() const override { return begun_; }
  Task<> disconnected() override { return at_.wire.untilPeerGone(); }
  Task<Result<Stream>> upgrade(ResponseHead head) override;
  Task<Result<Stream>> tunnel() override;

  enum class Outcome {
    kNothing,    // no answer yet
    kKeepAlive,  // answered, and the next request may follow
    kClose,      // answered, and the client knows that the connection ends
    kCut,        // incomplete: the client must notice
    kHandedOver,
  };
  [[nodiscard]] Outcome outcome() const;
  // An incomplete answer that would pass for a complete one if the connection ended in order.
  [[nodiscard]] bool needsReset() const { return headSent_ && framing_ == Framing::kUntilClose; }

 private:
  [[nodiscard]] Result<> ready() const;
  // The framing of a body whose length is known (or not) when the head leaves.
  void chooseFraming(std::optional<uint64_t> length);
  // Puts the head into the scratch memory if it has not been sent; else empties it.
  void startPiece();
  // Counts `size` bytes of body against an announced length.
  Result<> account(uint64_t size);
  Task<Result<>> transmit(Pieces pieces, sys::More more, const StallLimit* stall);
  Task<Result<>> transmitFile(int file, uint64_t offset, uint64_t length);
  Task<Result<>> end(std::string_view last, std::string_view trailers);
  Task<Result<Stream>> handOver(ResponseHead head, std::string_view lastField);

  AnswerContext at_;
  ResponseHead head_;
  Framing framing_ = Framing::kNone;
  uint64_t left_ = 0;    // with a length
  bool silent_ = false;  // an answer to HEAD, or a status without a body
  bool begun_ = false;
  bool headSent_ = false;
  bool finished_ = false;
  bool failed_ = false;
  bool keepAlive_ = false;
  bool handedOver_ = false;
};

}  // namespace cay::net
