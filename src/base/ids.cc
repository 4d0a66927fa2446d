#include "base/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace cay {
namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr size_t kIdBytes = 8;

void appendHex(std::string& out, uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) out.push_back(kHex[(value >> shift) & 15]);
}

uint64_t fnv1a(std::string_view data, uint64_t seed) {
  uint64_t hash = seed;
  for (unsigned char byte : data) hash = (hash ^ byte) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

std::string randomHex(size_t bytes) {
  std::string out;
  out.reserve(bytes * 2);
  unsigned char raw[64];
  while (bytes > 0) {
    const size_t want = std::min(bytes, sizeof raw);
    const ssize_t got = ::getrandom(raw, want, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();
    }
    for (ssize_t i = 0; i < got; ++i) {
      out.push_back(kHex[raw[i] >> 4]);
      out.push_back(kHex[raw[i] & 15]);
    }
    bytes -= static_cast<size_t>(got);
  }
  return out;
}

std::string newId(std::string_view prefix) {
  return std::string(prefix) + "-" + randomHex(kIdBytes);
}

bool isId(std::string_view prefix, std::string_view text) {
  if (text.size() != prefix.size() + 1 + kIdBytes * 2) return false;
  if (!text.starts_with(prefix) || text[prefix.size()] != '-') return false;
  return std::ranges::all_of(text.substr(prefix.size() + 1), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool equalConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    differ |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return differ == 0;
}

std::string fingerprint(std::string_view data) {
  std::string out;
  appendHex(out, fnv1a(data, 0xcbf29ce484222325ULL));
  appendHex(out, fnv1a(data, 0x9ae16a3b2f90404fULL) + data.size());
  return out;
}

}  // namespace cay
