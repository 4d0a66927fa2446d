#include "files/read.h"

#include <algorithm>
#include <climits>

#include "files/entry.h"
#include "sys/io.h"

namespace cay::files {
namespace {

constexpr uint64_t kSmall = uint64_t{64} * 1024;

// Up to `want` bytes from `offset`; fewer only at the end of the file.
Result<std::string> readAt(int file, uint64_t offset, size_t want) {
  std::string bytes(want, '\0');
  size_t have = 0;
  while (have < want) {
    CAY_ASSIGN(const size_t got,
               sys::preadSome(file, std::span(bytes).subspan(have), offset + have));
    if (got == 0) break;
    have += got;
  }
  bytes.resize(have);
  return bytes;
}

}  // namespace

Result<Reading> openForReading(const Place& place, std::string_view path, const ReadRange& range) {
  CAY_ASSIGN(const auto acting, place.act());
  CAY_ASSIGN(const std::string absolute, place.absolute(path));
  // Looked at before it is opened: the opening alone of a FIFO or a device can wait or have
  // effects.
  CAY_ASSIGN(const Fd found, place.open(absolute, O_PATH));
  CAY_ASSIGN(const sys::Stat before, sys::statFd(found.get()));
  CAY_TRY(requireRegular(before, absolute));
  Reading reading;
  CAY_ASSIGN(reading.file, place.open(absolute, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(reading.file.get()));
  CAY_TRY(requireRegular(stat, absolute));

  const auto size = static_cast<uint64_t>(stat.st_size);
  const uint64_t wanted = range.length.value_or(UINT64_MAX);
  const uint64_t there = range.offset < size ? std::min(wanted, size - range.offset) : 0;
  reading.offset = std::min<uint64_t>(range.offset, INT64_MAX - kSmall);
  if (there > kSmall) {
    reading.length = there;
    return reading;
  }
  // An unsized file (size 0) may hold more than it says.
  const auto atOnce = static_cast<size_t>(size == 0 ? std::min(wanted, kSmall) : there);
  CAY_ASSIGN(reading.head, named(readAt(reading.file.get(), reading.offset, atOnce), absolute));
  reading.offset += reading.head.size();
  if (size == 0 && reading.head.size() == kSmall && wanted > kSmall) {
    reading.unsized = true;
    reading.length = wanted - kSmall;
  } else {
    reading.file.reset();
  }
  return reading;
}

Result<size_t> readMore(Reading& reading, std::span<char> buffer) {
  const size_t want = std::min<uint64_t>(buffer.size(), reading.length);
  CAY_ASSIGN(const size_t got,
             sys::preadSome(reading.file.get(), buffer.first(want), reading.offset));
  reading.offset += got;
  reading.length -= got;
  return got;
}

}  // namespace cay::files
