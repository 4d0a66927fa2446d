#include "base/sha256.h"

#include <gtest/gtest.h>

namespace cay {
namespace {

// Of FIPS 180-4 and NIST's SHAVS files.
TEST(Sha256, GivesThePublishedDigests) {
  const struct {
    std::string text;
    const char* digest;
  } cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"\xbd", "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmn"
       "opqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1'000'000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto& test : cases) EXPECT_EQ(sha256Hex(test.text), test.digest);
}

// NIST's byte-oriented messages of zeros, around the places where padding needs another block.
TEST(Sha256, PadsAtEveryLength) {
  const struct {
    size_t zeros;
    const char* digest;
  } cases[] = {
      {55, "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7"},
      {56, "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb"},
      {57, "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785"},
      {64, "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b"},
      {1000, "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(sha256Hex(std::string(test.zeros, '\0')), test.digest) << test.zeros;
  }
}

TEST(Sha256, IsTheSameWhateverThePieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text.append(std::to_string(i));
  const std::string whole = sha256Hex(text);
  for (const size_t step : {1UL, 3UL, 63UL, 64UL, 65UL, 200UL}) {
    Sha256 sha;
    for (size_t at = 0; at < text.size(); at += step) {
      sha.update(std::string_view(text).substr(at, step));
    }
    EXPECT_EQ(sha.finishHex(), whole) << step;
  }
}

}  // namespace
}  // namespace cay
