#include "net/head_parser.h"

#include "net/beast_events.h"

namespace cay::net {
namespace {

namespace beast = boost::beast::http;

std::unexpected<HeadError> refuse(int status, std::string_view message) {
  return std::unexpected(HeadError{status, std::string(message)});
}

class RequestReader final : public BeastEvents<true> {
 public:
  explicit RequestReader(RequestHead& head) : head_(head) {
    skip(true);  // the head alone
    head_.fields.clear();
  }

 private:
  void on_request_impl(beast::verb, Text method, Text target, int version, ErrorCode&) override {
    head_.method = view(method);
    head_.target = view(target);
    head_.minorVersion = version % 10;
  }
  void on_field_impl(beast::field, Text name, Text value, ErrorCode&) override {
    head_.fields.add(view(name), view(value));
  }

  RequestHead& head_;
};

class ResponseReader final : public BeastEvents<false> {
 public:
  explicit ResponseReader(ResponseStart& start) : start_(start) {
    skip(true);
    start_.head.fields.clear();
  }

 private:
  void on_response_impl(int status, Text, int version, ErrorCode&) override {
    start_.head.status = status;
    start_.minorVersion = version % 10;
  }
  void on_field_impl(beast::field, Text name, Text value, ErrorCode&) override {
    start_.head.fields.add(view(name), view(value));
  }

  ResponseStart& start_;
};

// True if the reader took the whole head and found it well formed.
template <typename Reader>
bool readWhole(Reader& reader, std::string_view head) {
  boost::beast::error_code error;
  const size_t taken = reader.put(boost::asio::const_buffer(head.data(), head.size()), error);
  return !error && reader.is_done() && taken == head.size();
}

bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

// A well-formed version that is not HTTP/1.0 or 1.1, so that the client learns the real reason.
bool namesUnknownVersion(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\r'));
  const std::string_view version = line.substr(line.rfind(' ') + 1);
  return version.size() == 8 && version.starts_with("HTTP/") && isDigit(version[5]) &&
         version[6] == '.' && isDigit(version[7]) && version != "HTTP/1.1" && version != "HTTP/1.0";
}

}  // namespace

std::expected<size_t, HeadError> RequestParser::parse(std::string_view bytes, RequestHead& head) {
  const auto size = scanner_.scan(bytes);
  if (!size || *size == 0) return size;
  const std::string_view text = bytes.substr(scanner_.start(), *size - scanner_.start());
  if (namesUnknownVersion(text)) return refuse(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
  RequestReader reader(head);
  if (!readWhole(reader, text)) return refuse(400, "the request head is malformed");
  if (auto judged = judgeRequest(head, connects_); !judged) return std::unexpected(judged.error());
  scanner_.reset();
  return size;
}

std::expected<size_t, HeadError> ResponseParser::parse(std::string_view bytes, bool toHead,
                                                       ResponseStart& start) {
  const auto size = scanner_.scan(bytes);
  if (!size || *size == 0) return size;
  ResponseReader reader(start);
  if (scanner_.start() != 0 || !readWhole(reader, bytes.substr(0, *size))) {
    return refuse(502, "the response head is malformed");
  }
  const auto body = judgeResponse(start.head.status, start.minorVersion, start.head.fields, toHead);
  if (!body) return std::unexpected(body.error());
  start.body = *body;
  scanner_.reset();
  return size;
}

}  // namespace cay::net
