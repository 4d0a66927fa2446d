#include "net/chunked_decoder.h"

#include <gmock/gmock.h>

#include <array>
#include <vector>

namespace cay::net {
namespace {

struct Decoded {
  enum class End { kDone, kIncomplete, kInvalid } end = End::kIncomplete;
  std::string body;
  size_t consumed = 0;
  std::vector<std::string> trailers;

  bool operator==(const Decoded&) const = default;
};
using End = Decoded::End;

// Gives the decoder `step` more bytes at a time, and takes at most `room` out.
Decoded decode(std::string_view bytes, size_t step, size_t room = 4096) {
  Decoded result;
  ChunkedDecoder decoder;
  std::string out(room, '\0');
  for (size_t given = 0;;) {
    const auto taken = decoder.decode(bytes.substr(result.consumed, given - result.consumed), out);
    if (!taken) {
      result.end = End::kInvalid;
      return result;
    }
    result.body.append(out, 0, taken->produced);
    result.consumed += taken->consumed;
    if (decoder.done()) break;
    if (taken->consumed > 0) continue;
    if (given == bytes.size()) return result;
    given = std::min(given + step, bytes.size());
  }
  result.end = End::kDone;
  for (const Field& field : decoder.trailers()) {
    result.trailers.push_back(field.name + "=" + field.value);
  }
  return result;
}

struct Case {
  std::string bytes;
  End end;
  std::string body;
};

const std::vector<Case>& cases() {
  using namespace std::string_literals;
  static const std::vector<Case> all = {
      {"0\r\n\r\n", End::kDone, ""},
      {"5\r\nhello\r\n0\r\n\r\n", End::kDone, "hello"},
      {"5\r\nhello\r\n1;ext=1\r\n!\r\n00\r\n\r\n", End::kDone, "hello!"},
      {"A\r\n0123456789\r\n0\r\n\r\n", End::kDone, "0123456789"},
      {"4\r\n\r\n\r\n\r\n0\r\n\r\n", End::kDone, "\r\n\r\n"},
      {"5\r\nhel", End::kIncomplete, "hel"},
      {"5\r\nhello\r\n", End::kIncomplete, "hello"},
      {"5\r\nhello\r\n0\r\n", End::kIncomplete, "hello"},
      {"0\r\n\r", End::kIncomplete, ""},
      {"5\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"5\r\nhelloXX0\r\n\r\n", End::kInvalid, "hello"},
      {"5\r\nhello0\r\n\r\n", End::kInvalid, "hello"},
      {"\r\n5\r\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"-5\r\nhello\r\n", End::kInvalid, ""},
      {"+5\r\nhello\r\n", End::kInvalid, ""},
      {"0x5\r\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {" 5\r\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"5 \r\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"g\r\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"10000000000000000\r\nhello\r\n", End::kInvalid, ""},
      {"5;a=\"\r\nhello\r\n0\r\n\r\n\"", End::kInvalid, ""},
      {"5;a\nb\r\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"5\rX\nhello\r\n0\r\n\r\n", End::kInvalid, ""},
      {"0\r\nX: a\r\n b\r\n\r\n", End::kInvalid, ""},
      {"1\r\na\r\n0\r\nX: a\r\n b\r\n\r\n", End::kInvalid, "a"},
      {"0\r\nX : a\r\n\r\n", End::kInvalid, ""},
      {"0\r\nX: a\0b\r\n\r\n"s, End::kInvalid, ""},
      {"0\r\nTransfer-Encoding: chunked\r\n\r\n", End::kInvalid, ""},
      {"0\r\nContent-Length: 3\r\n\r\n", End::kInvalid, ""},
  };
  return all;
}

TEST(ChunkedDecoder, TakesTheCodingOffAndRefusesWhatIsBroken) {
  for (const Case& test : cases()) {
    const Decoded whole = decode(test.bytes, test.bytes.size());
    EXPECT_EQ(whole.end, test.end) << test.bytes;
    EXPECT_EQ(whole.body, test.body) << test.bytes;
  }
}

TEST(ChunkedDecoder, GivesTheSameHoweverTheBytesAreCut) {
  for (const Case& test : cases()) {
    const Decoded whole = decode(test.bytes, test.bytes.size());
    for (const size_t step : {1, 2, 3, 7}) {
      EXPECT_EQ(decode(test.bytes, step), whole) << test.bytes;
      EXPECT_EQ(decode(test.bytes, step, 1), whole) << test.bytes;
    }
  }
}

TEST(ChunkedDecoder, LeavesWhatFollowsAlone) {
  const Decoded decoded = decode("1\r\na\r\n0\r\n\r\nGET / HTTP/1.1", 100);
  EXPECT_EQ(decoded.end, End::kDone);
  EXPECT_EQ(decoded.consumed, 11U);
}

TEST(ChunkedDecoder, KeepsTrailersButNotThoseThatChangeTheMessage) {
  const Decoded decoded = decode(
      "1\r\na\r\n0\r\nX-Sum: 1\r\nAuthorization: Bearer x\r\nHost: evil\r\nx-sum: 2\r\n\r\n", 100);
  EXPECT_EQ(decoded.end, End::kDone);
  EXPECT_THAT(decoded.trailers, ::testing::ElementsAre("X-Sum=1", "x-sum=2"));
}

TEST(ChunkedDecoder, BoundsSizeLinesAndTrailers) {
  const std::string filler(ChunkedDecoder::kMaxControlBytes, 'a');
  EXPECT_EQ(decode("5;" + filler + "\r\nhello\r\n0\r\n\r\n", 100'000).end, End::kInvalid);
  EXPECT_EQ(decode("5;" + filler, 1000).end, End::kInvalid);
  EXPECT_EQ(decode("0\r\nX: " + filler + "\r\n\r\n", 100'000).end, End::kInvalid);
  EXPECT_EQ(decode("0\r\nX: " + filler, 1000).end, End::kInvalid);
}

}  // namespace
}  // namespace cay::net
