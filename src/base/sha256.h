// SHA-256 (FIPS 180-4) over bytes that come in pieces. Our own, since cay-host is small and static
// and must do without OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cay {

class Sha256 {
 public:
  static constexpr size_t kHexDigits = 64;

  void update(std::string_view bytes);
  // The digest of all that was given, as lower-case hex. Nothing may be given afterwards.
  std::string finishHex();

 private:
  static constexpr size_t kBlock = 64;

  void takeBlock(const unsigned char* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, kBlock> rest_{};  // what does not fill a block yet
  size_t restSize_ = 0;
  uint64_t size_ = 0;
};

std::string sha256Hex(std::string_view bytes);

}  // namespace cay
