#include "sys/io.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>

namespace cay::sys {
namespace {

template <typename Call>
Result<size_t> retrying(std::string_view name, Call call) {
  ssize_t count;
  do {
    count = call();
  } while (count < 0 && errno == EINTR);
  if (count < 0) return failSys(name, errno);
  return static_cast<size_t>(count);
}

}  // namespace

Result<size_t> readSome(int fd, std::span<char> buffer) {
  return retrying("read", [&] { return ::read(fd, buffer.data(), buffer.size()); });
}

Result<size_t> writeSome(int fd, std::string_view data) {
  return retrying("write", [&] { return ::write(fd, data.data(), data.size()); });
}

Result<size_t> preadSome(int fd, std::span<char> buffer, uint64_t offset) {
  return retrying("pread", [&] {
    return ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
  });
}

Result<size_t> sendFileSome(int to, int file, uint64_t offset, size_t length) {
  auto at = static_cast<off_t>(offset);
  return retrying("sendfile", [&] { return ::sendfile(to, file, &at, length); });
}

Result<> pwriteAll(int fd, std::string_view data, uint64_t offset) {
  while (!data.empty()) {
    CAY_ASSIGN(const size_t count, retrying("pwrite", [&] {
                 return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(offset));
               }));
    data.remove_prefix(count);
    offset += count;
  }
  return {};
}

Result<> writeAll(int fd, std::string_view data) {
  while (!data.empty()) {
    CAY_ASSIGN(const size_t count, writeSome(fd, data));
    data.remove_prefix(count);
  }
  return {};
}

namespace {

Result<std::string> readWhole(const Fd& file, const char* path, size_t limit) {
  if (!file.valid()) return failSys(path, errno);
  std::string out;
  char piece[4096];
  while (out.size() < limit) {
    CAY_ASSIGN(const size_t count, readSome(file.get(), piece));
    if (count == 0) break;
    out.append(piece, count);
  }
  return out;
}

}  // namespace

Result<> writeFileAt(int dir, const char* path, std::string_view text) {
  const Fd file(::openat(dir, path, O_WRONLY | O_CLOEXEC));
  if (!file.valid()) return failSys(path, errno);
  if (auto written = writeAll(file.get(), text); !written) {
    return std::unexpected(std::move(written.error()).wrap(path));
  }
  return {};
}

Result<std::string> readFile(const char* path, size_t limit) {
  return readWhole(Fd(::open(path, O_RDONLY | O_CLOEXEC)), path, limit);
}

Result<std::string> readFileAt(int dir, const char* path, size_t limit) {
  return readWhole(Fd(::openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)), path, limit);
}

Result<Pipe> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failSys("pipe2", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<> setNonBlocking(int fd) {
  if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return failSys("fcntl", errno);
  return {};
}

Result<Fd> memoryFile(const char* name, std::string_view data) {
  Fd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file.valid()) return failSys("memfd_create", errno);
  CAY_TRY(pwriteAll(file.get(), data, 0));
  return file;
}

}  // namespace cay::sys
