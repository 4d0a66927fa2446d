#include "net/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "sys/uapi_fs.h"

namespace cay::net {
namespace {

// Read-ahead brings in runs of at least this size, so one byte of each is a fair sample.
constexpr size_t kSampleStride = size_t{128} * 1024;

enum class Answer { kYes, kNo, kUnknown };

Answer probeByRead(int file, uint64_t offset) {
  char byte;
  iovec piece{&byte, 1};
  // The offset travels in two halves, of which 64-bit systems use the first alone.
  if (::syscall(SYS_preadv2, file, &piece, 1, offset, 0, sys::kReadNoWait) >= 0)
    return Answer::kYes;
  return errno == EAGAIN ? Answer::kNo : Answer::kUnknown;
}

// For file systems without RWF_NOWAIT, overlayfs among them.
bool isResident(int file, uint64_t offset, size_t length) {
  struct stat info{};
  const bool sized = ::fstat(file, &info) == 0;
  const auto size = static_cast<uint64_t>(info.st_size);
  if (!sized || offset >= size) return true;  // past the end there is nothing to wait for
  length = std::min<uint64_t>(length, size - offset);
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t start = offset - offset % page;
  const size_t span = length + static_cast<size_t>(offset - start);
  void* map = ::mmap(nullptr, span, PROT_READ, MAP_SHARED, file, static_cast<off_t>(start));
  if (map == MAP_FAILED) return true;
  const size_t pages = (span + page - 1) / page;
  const auto states = std::make_unique_for_overwrite<unsigned char[]>(pages);
  const bool told = ::mincore(map, span, states.get()) == 0;
  ::munmap(map, span);
  return !told || std::all_of(states.get(), states.get() + pages,
                              [](unsigned char state) { return (state & 1) != 0; });
}

}  // namespace

bool isCached(int file, uint64_t offset, size_t length) {
  if (length == 0) return true;
  for (size_t at = 0; at < length; at += kSampleStride) {
    switch (probeByRead(file, offset + at)) {
      case Answer::kYes:
        break;
      case Answer::kNo:
        return false;
      case Answer::kUnknown:
        return isResident(file, offset, length);
    }
  }
  return probeByRead(file, offset + length - 1) != Answer::kNo;
}

Fd duplicate(int file) {
  return Fd(::fcntl(file, F_DUPFD_CLOEXEC, 3));
}

void readIn(int file, uint64_t offset, size_t length) {
  std::array<char, size_t{64} * 1024> scratch;
  while (length > 0) {
    const ssize_t count =
        ::pread(file, scratch.data(), std::min(length, scratch.size()), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    offset += static_cast<uint64_t>(count);
    length -= static_cast<size_t>(count);
  }
}

}  // namespace cay::net
