#include "net/chunked_decoder.h"

#include <algorithm>
#include <cstring>

#include "net/beast_events.h"
#include "net/framing.h"

namespace cay::net {

class ChunkedDecoder::Reader final : public BeastEvents<true> {
 public:
  // Beast decodes bodies of whole messages only, so it is first given a head that announces one.
  Reader() {
    constexpr std::string_view kHead = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    ErrorCode error;
    put(boost::asio::const_buffer(kHead.data(), kHead.size()), error);
    eager(false);
    inTrailers_ = true;
  }

  // One element: a size line, a run of data, or the end with its trailers.
  Result<Step> step(std::string_view in, std::span<char> out) {
    const bool control = left_ == 0;
    if (control) {
      // The shortest end of a body, "0\r\n\r\n", has five bytes; Beast relies on seeing that many.
      if (in.size() < 5) return Step{};
      in = in.substr(0, kMaxControlBytes);
      if (hasQuotedExtension(in)) return malformed();
    } else if (out.empty()) {
      return Step{};
    }
    out_ = out;
    produced_ = 0;
    ErrorCode error;
    const size_t consumed = put(boost::asio::const_buffer(in.data(), in.size()), error);
    if (error == boost::beast::http::error::need_more) {
      if (in.size() == kMaxControlBytes) {
        return fail(Code::kInvalid, "a chunk header or the trailer part is too large");
      }
      return Step{};
    }
    if (error || (is_done() && isFolded(in.substr(0, consumed)))) {
      return malformed();
    }
    atFirstLine_ = false;
    return Step{consumed, produced_};
  }

  [[nodiscard]] const Fields& trailers() const { return trailers_; }

 private:
  static std::unexpected<Error> malformed() {
    return fail(Code::kInvalid, "the chunked body is malformed");
  }

  // A quoted string could hide the end of the size line. Nobody sends extensions anyway.
  [[nodiscard]] bool hasQuotedExtension(std::string_view in) const {
    if (!atFirstLine_) in.remove_prefix(2);  // the end of the chunk before
    const size_t end = in.find('\r');
    return end != std::string_view::npos && in.substr(0, end).find('"') != std::string_view::npos;
  }

  // Beast joins folded lines; nothing else we talk to should have to know how.
  static bool isFolded(std::string_view text) {
    return text.find("\r\n ") != std::string_view::npos ||
           text.find("\r\n\t") != std::string_view::npos;
  }

  void on_chunk_header_impl(std::uint64_t size, Text, ErrorCode&) override { left_ = size; }
  std::size_t on_chunk_body_impl(std::uint64_t, Text body, ErrorCode&) override {
    const size_t taken = std::min(body.size(), out_.size());
    if (taken > 0) std::memcpy(out_.data(), body.data(), taken);
    produced_ = taken;
    left_ -= taken;
    return taken;
  }
  void on_field_impl(boost::beast::http::field, Text name, Text value, ErrorCode&) override {
    if (inTrailers_ && !isForbiddenTrailer(view(name))) trailers_.add(view(name), view(value));
  }

  uint64_t left_ = 0;  // of the current chunk's data
  bool atFirstLine_ = true;
  bool inTrailers_ = false;
  std::span<char> out_;
  size_t produced_ = 0;
  Fields trailers_;
};

ChunkedDecoder::ChunkedDecoder() : reader_(std::make_unique<Reader>()) {}
ChunkedDecoder::~ChunkedDecoder() = default;

Result<ChunkedDecoder::Step> ChunkedDecoder::decode(std::string_view in, std::span<char> out) {
  Step total;
  while (!done()) {
    if (failure_) break;
    const Result<Step> step = reader_->step(in, out);
    if (!step) failure_ = step.error();
    if (!step || step->consumed == 0) break;
    in.remove_prefix(step->consumed);
    out = out.subspan(step->produced);
    total.consumed += step->consumed;
    total.produced += step->produced;
  }
  // What came before the fault is given out first, however the input was cut.
  if (failure_ && total.consumed == 0) return std::unexpected(*failure_);
  return total;
}

bool ChunkedDecoder::done() const {
  return !failure_ && reader_->is_done();
}

const Fields& ChunkedDecoder::trailers() const {
  return reader_->trailers();
}

}  // namespace cay::net
