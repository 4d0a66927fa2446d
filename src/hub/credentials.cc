#include "hub/credentials.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "hub/tokens.h"

namespace cay::hub {
namespace {

// The value of a letter, also of the alphabet for URLs; nullopt for one that is in neither.
std::optional<uint32_t> sextet(char c) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (c == '-') c = '+';
  if (c == '_') c = '/';
  const size_t at = kAlphabet.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<uint32_t>(at);
}

// Up to the padding, which may be missing: what matters is that nothing readable stays hidden.
std::optional<std::string> base64Decode(std::string_view text) {
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const auto value = sextet(c);
    if (!value) return std::nullopt;
    bits = bits << 6U | *value;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> static_cast<unsigned>(have) & 0xffU));
  }
  return out;
}

}  // namespace

std::optional<std::string> secretIn(std::string_view value) {
  const auto parts = words(value);
  if (parts.size() != 2) return std::nullopt;
  if (equalIgnoreCase(parts[0], "bearer")) return std::string(parts[1]);
  if (!equalIgnoreCase(parts[0], "basic")) return std::nullopt;
  const auto pair = base64Decode(parts[1]);
  const size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return pair->substr(colon + 1);
}

bool holdsOurToken(std::string_view value) {
  if (value.contains(kTokenPrefix)) return true;
  return std::ranges::any_of(words(value), [](std::string_view word) {
    const auto decoded = base64Decode(word);
    return decoded && decoded->contains(kTokenPrefix);
  });
}

}  // namespace cay::hub
