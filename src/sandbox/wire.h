// Bytes for the socket between host and keeper, and for the records in the state folder:
// little-endian integers and length-prefixed strings. A Reader never reads past its end; check ok()
// once, at the end.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "sandbox/exec.h"

namespace cay::sandbox {

static_assert(std::endian::native == std::endian::little,
              "records are written as the machine has them");

class Writer {
 public:
  template <typename Integer>
    requires std::is_integral_v<Integer> || std::is_enum_v<Integer>
  Writer& put(Integer value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Writer& put(std::string_view text) {
    put(static_cast<uint32_t>(text.size()));
    out_.append(text);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <typename Integer>
    requires std::is_integral_v<Integer> || std::is_enum_v<Integer>
  Integer get() {
    // A byte of a stranger that is neither 0 nor 1 must not become a bool as it is.
    if constexpr (std::is_same_v<Integer, bool>) return get<uint8_t>() != 0;
    Integer value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      rest_ = {};
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const auto length = get<uint32_t>();
    if (rest_.size() < length) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view out = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return out;
  }
  // Everything so far was there.
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool atEnd() const { return rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

void putOffsets(Writer& out, const Offsets& offsets);
Offsets getOffsets(Reader& in);
void putUsage(Writer& out, const Usage& usage);
Usage getUsage(Reader& in);
void putExit(Writer& out, const ExitRecord& record);
ExitRecord getExit(Reader& in);
// Without the data for its standard input, which travels beside it.
void putSpec(Writer& out, const ExecSpec& spec);
ExecSpec getSpec(Reader& in);

}  // namespace cay::sandbox
