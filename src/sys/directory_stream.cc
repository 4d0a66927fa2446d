#include "sys/directory_stream.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace cay::sys {
namespace {

// What getdents64 fills in: the kernel's layout, which glibc's dirent64 shares.
using RawEntry = struct dirent64;

constexpr size_t kBufferBytes = size_t{32} << 10;

}  // namespace

DirectoryStream::DirectoryStream(int dir)
    : dir_(dir), buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)) {}

Result<std::optional<DirectoryStream::Entry>> DirectoryStream::next() {
  for (;;) {
    if (at_ == end_) {
      const long got = ::syscall(SYS_getdents64, dir_, buffer_.get(), kBufferBytes);
      if (got == -1) return failSys("getdents64", errno);
      if (got == 0) return std::nullopt;
      at_ = 0;
      end_ = static_cast<size_t>(got);
    }
    const auto* entry = reinterpret_cast<const RawEntry*>(buffer_.get() + at_);
    at_ += entry->d_reclen;
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") return Entry{entry->d_name, entry->d_type};
  }
}

Result<> DirectoryStream::rewind() {
  at_ = end_ = 0;
  if (::lseek(dir_, 0, SEEK_SET) == -1) return failSys("lseek", errno);
  return {};
}

}  // namespace cay::sys
