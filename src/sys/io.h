// Plain reading and writing. All calls retry EINTR; none of them waits unless the descriptor does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

// 0 is the end of the file; kExhausted with EAGAIN when a non-blocking descriptor has nothing now.
Result<size_t> readSome(int fd, std::span<char> buffer);
Result<size_t> writeSome(int fd, std::string_view data);
Result<size_t> preadSome(int fd, std::span<char> buffer, uint64_t offset);
// sendfile(2): from a file's offset into a pipe or socket.
Result<size_t> sendFileSome(int to, int file, uint64_t offset, size_t length);
Result<> pwriteAll(int fd, std::string_view data, uint64_t offset);
Result<> writeAll(int fd, std::string_view data);
// A whole small file, e.g. below /proc or /sys; at most `limit` bytes.
Result<std::string> readFile(const char* path, size_t limit = 64 * 1024);
// The same of a file below a directory; a link at its end is not followed.
Result<std::string> readFileAt(int dir, const char* path, size_t limit = 64 * 1024);
// Into a file that is there, by one write, as files below /proc and /sys want it.
Result<> writeFileAt(int dir, const char* path, std::string_view text);

struct Pipe {
  Fd read;
  Fd write;
};
Result<Pipe> makePipe();
// For a new pipe or socket, which has no other status flags to keep.
Result<> setNonBlocking(int fd);

// An anonymous file in memory that holds `data`, positioned at its start.
Result<Fd> memoryFile(const char* name, std::string_view data);

}  // namespace cay::sys
