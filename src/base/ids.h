// Names for things, from the kernel's random source.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cay {

// `bytes` random bytes as lower-case hex. Aborts if the kernel has no randomness to give, since
// every caller needs it to be unguessable or unique.
std::string randomHex(size_t bytes);

// "x-" + 16 hex digits: never mistaken for a number, safe in a URL and as a file name.
std::string newId(std::string_view prefix);

// True for what newId(prefix) can have made.
bool isId(std::string_view prefix, std::string_view text);

// Compares in time that depends on the lengths alone.
bool equalConstantTime(std::string_view a, std::string_view b);

// 128 bits over `data` as hex: tells a repeated request from another one. Not a cryptographic hash.
std::string fingerprint(std::string_view data);

}  // namespace cay
