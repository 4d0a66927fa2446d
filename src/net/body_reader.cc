#include "net/body_reader.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cay::net {
namespace {

constexpr size_t kFillBytes = size_t{16} * 1024;

std::unexpected<Error> brokenOff() {
  return fail(Code::kClosed, "the connection ended before the end of the body");
}

}  // namespace

BodyReader::BodyReader(Wire& wire, const BodyFraming& body)
    : wire_(wire),
      framing_(body.framing),
      left_(body.contentLength),
      complete_(framing_ == Framing::kNone || (framing_ == Framing::kLength && left_ == 0)) {
  if (framing_ == Framing::kChunked) decoder_.emplace();
}

Task<Result<size_t>> BodyReader::read(std::span<char> buffer) {
  if (complete_ || buffer.empty()) co_return 0;
  co_return decoder_ ? co_await readChunked(buffer) : co_await readPlain(buffer);
}

Task<Result<size_t>> BodyReader::readPlain(std::span<char> buffer) {
  const bool byLength = framing_ == Framing::kLength;
  if (byLength) buffer = buffer.first(std::min<uint64_t>(buffer.size(), left_));
  size_t count = std::min(buffer.size(), wire_.input().size());
  if (count > 0) {
    std::memcpy(buffer.data(), wire_.input().view().data(), count);
    wire_.input().consume(count);
  } else {
    const ssize_t received = co_await wire_.receive(buffer);
    if (received < 0 || (received == 0 && byLength)) co_return brokenOff();
    count = static_cast<size_t>(received);
  }
  left_ -= byLength ? count : 0;
  complete_ = byLength ? left_ == 0 : count == 0;
  co_return count;
}

Task<Result<size_t>> BodyReader::readChunked(std::span<char> buffer) {
  for (;;) {
    CAY_CO_ASSIGN(const auto step, decoder_->decode(wire_.input().view(), buffer));
    wire_.input().consume(step.consumed);
    complete_ = decoder_->done();
    if (step.produced > 0 || complete_) co_return step.produced;
    if (co_await wire_.fill(kFillBytes) <= 0) co_return brokenOff();
  }
}

const Fields& BodyReader::trailers() const {
  static const Fields none;
  return decoder_ ? decoder_->trailers() : none;
}

bool BodyReader::dropReceivedRest() {
  // A read in progress may be writing into the input buffer.
  if (complete_ || wire_.receiving()) return complete_;
  if (framing_ == Framing::kLength) {
    if (wire_.input().size() < left_) return false;
    wire_.input().consume(left_);
    complete_ = true;
  }
  std::array<char, 4096> scratch;
  while (!complete_ && decoder_) {
    const auto step = decoder_->decode(wire_.input().view(), scratch);
    if (!step || step->consumed == 0) return false;
    wire_.input().consume(step->consumed);
    complete_ = decoder_->done();
  }
  return complete_;
}

}  // namespace cay::net
