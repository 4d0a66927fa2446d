// The request path on arbitrary bytes: heads, chunked bodies and pipelined requests, cut at
// arbitrary points. The first two bytes of the input choose the cuts; the rest is what a client
// sent.
//
// Holds: what is read does not depend on how the bytes were cut; an accepted head is unambiguous
// and fits its limits; nothing is read past the end of a message.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "net/chunked_decoder.h"
#include "net/head_parser.h"

namespace {

using cay::net::ChunkedDecoder;
using cay::net::Framing;
using cay::net::RequestHead;
using cay::net::RequestParser;

constexpr size_t kMaxHead = size_t{8} * 1024;

void require(bool holds) {
  if (!holds) std::abort();
}

// Gives out the input in growing pieces, as a connection's buffer would.
class Feed {
 public:
  Feed(std::string_view all, uint8_t seed, uint8_t step) : all_(all), seed_(seed), step_(step) {}

  [[nodiscard]] std::string_view view() const { return all_.substr(begin_, end_ - begin_); }
  void consume(size_t count) {
    require(count <= end_ - begin_);
    begin_ += count;
  }
  // False at the end of the input.
  bool more() {
    if (end_ == all_.size()) return false;
    seed_ = seed_ * 1103515245U + 12345U;
    const size_t cut = step_ == 0 ? all_.size() : 1 + (seed_ >> 16U) % step_;
    end_ = std::min(end_ + cut, all_.size());
    return true;
  }

 private:
  std::string_view all_;
  uint32_t seed_;
  size_t step_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

void checkHead(const RequestHead& head, size_t size) {
  require(size <= kMaxHead);
  require(!head.method.empty() && head.method != "CONNECT");
  require(head.target == "*" || head.target.starts_with('/'));
  require(head.fields.count("host") <= 1);
  require(head.minorVersion == 0 || head.fields.count("host") == 1);
  require(head.fields.count("content-length") + head.fields.count("transfer-encoding") <= 1);
  require((head.framing == Framing::kLength) == (head.fields.count("content-length") == 1));
  require((head.framing == Framing::kChunked) == (head.fields.count("transfer-encoding") == 1));
  for (const auto& field : head.fields) {
    require(!field.name.empty() && field.name.find_first_of(" \t\r\n:") == std::string::npos);
    require(field.value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
  }
}

// Everything that a server would have understood, as text that can be compared.
std::string read(Feed feed) {
  std::string heard;
  RequestParser parser(kMaxHead);
  for (;;) {
    RequestHead head;
    size_t size = 0;
    while (size == 0) {
      const auto parsed = parser.parse(feed.view(), head);
      if (!parsed) return heard + "refused " + std::to_string(parsed.error().status);
      size = *parsed;
      if (size == 0 && !feed.more()) return heard + "incomplete head";
    }
    checkHead(head, size);
    feed.consume(size);
    heard += head.method + ' ' + head.target + '\n';
    for (const auto& field : head.fields) heard += field.name + ':' + field.value + '\n';

    uint64_t left = head.framing == Framing::kLength ? head.contentLength : 0;
    while (left > 0) {
      const size_t taken = std::min<uint64_t>(left, feed.view().size());
      heard.append(feed.view().substr(0, taken));
      feed.consume(taken);
      left -= taken;
      if (left > 0 && feed.view().empty() && !feed.more()) return heard + "incomplete body";
    }
    if (head.framing != Framing::kChunked) continue;
    ChunkedDecoder decoder;
    std::array<char, 61> out;
    while (!decoder.done()) {
      const auto step = decoder.decode(feed.view(), out);
      if (!step) return heard + "broken body";
      heard.append(out.data(), step->produced);
      feed.consume(step->consumed);
      if (step->consumed == 0 && !feed.more()) return heard + "incomplete body";
    }
    for (const auto& field : decoder.trailers()) heard += field.name + ':' + field.value + '\n';
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string whole = read(Feed(bytes, 0, 0));
  require(read(Feed(bytes, data[0], data[1])) == whole);
  require(read(Feed(bytes, 0, 1)) == whole);
  return 0;
}
