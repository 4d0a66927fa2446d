#include "net/http_client.h"

#include <optional>
#include <utility>

#include "base/text.h"
#include "net/body_reader.h"
#include "net/field_text.h"
#include "net/head_parser.h"
#include "net/wire.h"

namespace cay::net {
namespace {

constexpr size_t kMaxHeadBytes = size_t{64} * 1024;
constexpr std::string_view kLineEnd = "\r\n";

bool isRequestText(std::string_view text) {
  return !text.empty() && isFieldValue(text) && text.find_first_of(" \t") == std::string_view::npos;
}

class WireExchange final : public ClientExchange {
 public:
  explicit WireExchange(Stream stream) : wire_(std::move(stream)) {}

  Task<Result<>> sendHead(std::string_view method, std::string_view target, const Fields& fields,
                          Framing framing, uint64_t contentLength) override {
    std::string out;
    if (!isFieldName(method) || !isRequestText(target)) {
      co_return fail(Code::kInternal, "the request line is malformed");
    }
    out.append(method).append(" ").append(target).append(" HTTP/1.1\r\n");
    for (const Field& field : fields) {
      if (!isFieldName(field.name) || !isFieldValue(field.value) ||
          equalIgnoreCase(field.name, "content-length") ||
          equalIgnoreCase(field.name, "transfer-encoding")) {
        co_return fail(Code::kInternal, "a request may not carry the field " + quoted(field.name));
      }
      appendField(out, field);
    }
    if (framing == Framing::kLength) {
      out.append("Content-Length: ").append(std::to_string(contentLength)).append(kLineEnd);
    } else if (framing == Framing::kChunked) {
      out.append("Transfer-Encoding: chunked\r\n");
    }
    out.append(kLineEnd);
    framingSent_ = framing;
    unsent_ = framing == Framing::kLength ? contentLength : 0;
    co_return co_await transmit({out});
  }

  Task<Result<>> sendBody(std::string_view data) override {
    if (data.empty()) co_return Result<>();
    if (framingSent_ == Framing::kChunked) {
      std::string size;
      appendChunkSize(size, data.size());
      co_return co_await transmit({size, data, kLineEnd});
    }
    if (data.size() > unsent_) {
      co_return fail(Code::kInternal, "the request body is longer than announced");
    }
    unsent_ -= data.size();
    co_return co_await transmit({data});
  }

  Task<Result<>> endBody(const Fields& trailers) override {
    if (unsent_ > 0) co_return fail(Code::kInternal, "the request body is shorter than announced");
    if (framingSent_ != Framing::kChunked) co_return Result<>();
    std::string end = "0\r\n";
    appendTrailers(end, trailers);
    end.append(kLineEnd);
    co_return co_await transmit({end});
  }

  Task<Result<ResponseHead>> readHead(bool toHead) override {
    ResponseStart start;
    do {
      CAY_CO_TRY(co_await readOneHead(toHead, start));
      // Interim answers are for whoever sent an Expect field; nobody did here.
    } while (start.head.status / 100 == 1 && start.head.status != 101);
    body_ = start.body;
    reader_.emplace(wire_, body_);
    co_return std::move(start.head);
  }

  Task<Result<size_t>> readBody(std::span<char> buffer) override { return reader_->read(buffer); }

  [[nodiscard]] const Fields& trailers() const override { return reader_->trailers(); }
  [[nodiscard]] Framing framing() const override { return body_.framing; }
  [[nodiscard]] uint64_t contentLength() const override { return body_.contentLength; }
  Stream release() override { return wire_.release(); }

 private:
  Task<Result<>> transmit(Pieces pieces) {
    if (co_await wire_.send(pieces) != 0) {
      co_return fail(Code::kClosed, "the server closed the connection");
    }
    co_return Result<>();
  }

  Task<Result<>> readOneHead(bool toHead, ResponseStart& start) {
    ResponseParser parser(kMaxHeadBytes);
    for (;;) {
      const auto size = parser.parse(wire_.input().view(), toHead, start);
      if (!size)
        co_return fail(Code::kUnreachable, "the server's answer is bad: " + size.error().message);
      if (*size > 0) {
        wire_.input().consume(*size);
        co_return Result<>();
      }
      if (co_await wire_.fill() <= 0) {
        co_return fail(Code::kUnreachable, "the server closed the connection without an answer");
      }
    }
  }

  Wire wire_;
  Framing framingSent_ = Framing::kNone;
  uint64_t unsent_ = 0;  // with a length
  BodyFraming body_;
  std::optional<BodyReader> reader_;  // once the head is there
};

}  // namespace

std::unique_ptr<ClientExchange> ClientExchange::over(Stream stream) {
  return std::make_unique<WireExchange>(std::move(stream));
}

}  // namespace cay::net
