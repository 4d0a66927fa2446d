// The bytes of a tar header: POSIX ustar, which the reader and the writer share.
//
// Our own code instead of libarchive: cay-host is small and static, and needs one format of its
// forty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cay {

inline constexpr size_t kTarBlock = 512;

struct TarHeader {
  char name[100];
  char mode[8];
  char uid[8];
  char gid[8];
  char size[12];
  char mtime[12];
  char checksum[8];
  char type;
  char linkName[100];
  char magic[6];
  char version[2];
  char userName[32];
  char groupName[32];
  char deviceMajor[8];
  char deviceMinor[8];
  char prefix[155];
  char padding[12];
};
static_assert(sizeof(TarHeader) == kTarBlock);

// How many bytes fill a block after `size` bytes of content.
inline uint64_t tarPadding(uint64_t size) {
  return (kTarBlock - size % kTarBlock) % kTarBlock;
}

// The sum over all bytes with the checksum field taken as spaces.
unsigned tarChecksum(const TarHeader& header);

}  // namespace cay
