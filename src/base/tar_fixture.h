// For tests: archives made by hand, so that they can be wrong in every way.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/tar_format.h"

namespace cay {

class TarBuilder {
 public:
  static constexpr std::string_view kNoLink;
  struct Header {
    std::string_view name;
    char type = '0';
    std::string_view linkName = kNoLink;
    uint64_t size = 0;
    unsigned mode = 0644;
    unsigned uid = 0;
    unsigned gid = 0;
    bool goodChecksum = true;
  };

  TarBuilder& header(const Header& from) {
    TarHeader header{};
    std::ranges::copy(from.name.substr(0, sizeof header.name), header.name);
    std::ranges::copy(from.linkName.substr(0, sizeof header.linkName), header.linkName);
    std::snprintf(header.mode, sizeof header.mode, "%07o", from.mode);
    std::snprintf(header.uid, sizeof header.uid, "%07o", from.uid);
    std::snprintf(header.gid, sizeof header.gid, "%07o", from.gid);
    std::snprintf(header.size, sizeof header.size, "%011lo", from.size);
    std::snprintf(header.mtime, sizeof header.mtime, "%011o", 1'700'000'000U);
    header.type = from.type;
    std::memcpy(header.magic, "ustar", sizeof header.magic);
    std::memcpy(header.version, "00", sizeof header.version);
    const unsigned sum = tarChecksum(header) + (from.goodChecksum ? 0 : 1);
    std::snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    return *this;
  }
  TarBuilder& content(std::string_view data) {
    bytes_.append(data).append(tarPadding(data.size()), '\0');
    return *this;
  }
  TarBuilder& file(std::string_view name, std::string_view data) {
    return header({.name = name, .size = data.size()}).content(data);
  }
  TarBuilder& dir(std::string_view name) {
    return header({.name = name, .type = '5', .mode = 0755});
  }
  TarBuilder& symlink(std::string_view name, std::string_view target) {
    return header({.name = name, .type = '2', .linkName = target});
  }
  TarBuilder& hardLink(std::string_view name, std::string_view target) {
    return header({.name = name, .type = '1', .linkName = target});
  }
  TarBuilder& meta(char type, std::string_view data) {
    return header({.name = "meta", .type = type, .size = data.size()}).content(data);
  }
  TarBuilder& raw(std::string_view bytes) {
    bytes_.append(bytes);
    return *this;
  }
  // With the mark of the end.
  [[nodiscard]] std::string done() const { return bytes_ + std::string(2 * kTarBlock, '\0'); }
  [[nodiscard]] std::string cut() const { return bytes_; }

  // A pax record; its length counts itself.
  static std::string pax(std::string_view key, std::string_view value) {
    size_t length = key.size() + value.size() + 3;
    while (std::to_string(length).size() + key.size() + value.size() + 3 != length) ++length;
    return std::to_string(length).append(" ").append(key).append("=").append(value).append("\n");
  }

 private:
  std::string bytes_;
};

}  // namespace cay
