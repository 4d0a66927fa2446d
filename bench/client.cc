#include "client.h"

#include <sys/socket.h>

#include <algorithm>
#include <stdexcept>

#include "net/chunked_decoder.h"
#include "net/head_parser.h"

namespace cay::bench {
namespace {

constexpr size_t kMaxHead = 16 * 1024;

}  // namespace

std::string request(std::string_view method, std::string_view target, std::string_view token,
                    std::string_view body) {
  std::string text;
  text.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
  if (!token.empty()) text.append("X-Sandbox-Token: ").append(token).append("\r\n");
  if (!body.empty()) {
    text.append("Content-Type: application/json\r\nContent-Length: ");
    text.append(std::to_string(body.size())).append("\r\n");
  }
  return text.append("\r\n").append(body);
}

Client::Client(uint16_t port)
    : connection_(testing::RawClient::connect(port)), buffer_(kBufferBytes) {}

void Client::send(std::string_view bytes) {
  if (!connection_.send(bytes)) throw std::runtime_error("the server closed the connection");
}

void Client::receiveMore() {
  if (received_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const ssize_t count =
      ::recv(connection_.fd(), buffer_.data() + received_, buffer_.size() - received_, 0);
  if (count <= 0) throw std::runtime_error("the connection ended within an answer");
  received_ += static_cast<size_t>(count);
}

Client::Head Client::receiveHead() {
  received_ = 0;
  net::ResponseParser parser(kMaxHead);
  net::ResponseStart start;
  for (;;) {
    receiveMore();
    const auto size = parser.parse({buffer_.data(), received_}, false, start);
    if (!size) throw std::runtime_error("an answer that is no HTTP: " + size.error().message);
    if (*size == 0) continue;
    if (start.head.status != 200) {
      throw std::runtime_error("an answer with status " + std::to_string(start.head.status) + ": " +
                               std::string(buffer_.data() + *size, received_ - *size));
    }
    return {.size = *size,
            .chunked = start.body.framing == net::Framing::kChunked,
            .contentLength = start.body.contentLength};
  }
}

std::string_view Client::ask(std::string_view request) {
  send(request);
  const Head head = receiveHead();
  if (!head.chunked) {
    while (received_ < head.size + head.contentLength) receiveMore();
    return {buffer_.data() + head.size, head.contentLength};
  }
  body_.clear();
  net::ChunkedDecoder decoder;
  size_t at = head.size;
  while (!decoder.done()) {
    const size_t have = body_.size();
    body_.resize(have + (received_ - at));
    const auto step =
        decoder.decode({buffer_.data() + at, received_ - at}, std::span<char>(body_).subspan(have));
    if (!step) throw std::runtime_error("a broken chunked body: " + step.error().message);
    body_.resize(have + step->produced);
    at += step->consumed;
    if (step->consumed == 0 && !decoder.done()) receiveMore();
  }
  return body_;
}

uint64_t Client::download(std::string_view request) {
  send(request);
  const Head head = receiveHead();
  uint64_t left = head.contentLength - (received_ - head.size);
  while (left > 0) {
    received_ = 0;
    receiveMore();
    left -= received_;
  }
  return head.contentLength;
}

void Client::upload(std::string_view target, std::string_view token, uint64_t size) {
  std::string head = request("PUT", target, token);
  head.insert(head.size() - 2, "Content-Length: " + std::to_string(size) + "\r\n");
  send(head);
  const std::string_view piece(buffer_.data(), kBufferBytes);
  for (uint64_t left = size; left > 0;) {
    const size_t count = std::min<uint64_t>(left, piece.size());
    send(piece.substr(0, count));
    left -= count;
  }
  const Head answer = receiveHead();
  while (received_ < answer.size + answer.contentLength) receiveMore();
}

}  // namespace cay::bench
