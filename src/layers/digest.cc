#include "layers/digest.h"

#include <vector>

#include "base/sha256.h"
#include "sys/io.h"

namespace cay::layers {

bool isDigest(std::string_view text) {
  constexpr size_t kHexDigits = 64;
  return text.starts_with(kSha256) && text.size() == kSha256.size() + kHexDigits &&
         digestHex(text).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view digestHex(std::string_view digest) {
  return digest.substr(kSha256.size());
}

std::string digestOf(std::string_view bytes) {
  return std::string(kSha256) + sha256Hex(bytes);
}

Result<std::string> digestOfFile(int file) {
  Sha256 sha;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    CAY_ASSIGN(const size_t got, sys::readSome(file, buffer));
    if (got == 0) return std::string(kSha256) + sha.finishHex();
    sha.update({buffer.data(), got});
  }
}

}  // namespace cay::layers
