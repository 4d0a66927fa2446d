// For fuzzers of what unpacks archives: a folder to unpack into, with neighbours that must not
// change, and mutations that get past the checksums.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/tar_format.h"

// <temp>/root/in is unpacked into; what lies around it must stay as it is.
struct TarWorld {
  std::filesystem::path top;

  TarWorld() {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "cay-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    top = name;
    fs::create_directories(top / "root/in");
    std::ofstream(top / "root/neighbour") << "n";
    std::ofstream(top / "outside") << "o";
  }
  ~TarWorld() {
    std::error_code ignored;
    std::filesystem::remove_all(top, ignored);
  }
  TarWorld(const TarWorld&) = delete;
  TarWorld& operator=(const TarWorld&) = delete;

  void check() const {
    namespace fs = std::filesystem;
    size_t entries = 0;
    for (const auto& entry : fs::directory_iterator(top / "root"))
      entries += entry.exists() ? 1 : 0;
    for (const fs::path& file : {top / "root/neighbour", top / "outside"}) {
      if (fs::file_size(file) != 1 || fs::hard_link_count(file) != 1) std::abort();
    }
    if (entries != 2 || std::distance(fs::directory_iterator(top), {}) != 2) std::abort();
  }
  void clear() const {
    namespace fs = std::filesystem;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(top / "root/in")) {
      fs::remove_all(entry.path(), ignored);
    }
  }
};

// The checksum of every header that the mutations hit is put right again, or nothing behind it
// would ever be reached.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maxSize);
inline size_t mutateTar(uint8_t* data, size_t size, size_t maxSize, unsigned seed) {
  using cay::kTarBlock;
  using cay::TarHeader;
  size = LLVMFuzzerMutate(data, size, maxSize);
  if (seed % 8 == 0) return size;
  for (size_t at = 0; at + kTarBlock <= size; at += kTarBlock) {
    auto* header = reinterpret_cast<TarHeader*>(data + at);
    if (std::string_view(header->magic, 5) != "ustar") continue;
    unsigned sum = cay::tarChecksum(*header);
    for (int i = 5; i >= 0; --i, sum >>= 3)
      header->checksum[i] = static_cast<char>('0' + (sum & 7));
    header->checksum[6] = '\0';
    header->checksum[7] = ' ';
  }
  return size;
}
