// Opening a file for a client that wants all of it or a range. Blocking.
//
// Refuses promptly what is no regular file: nothing here can hang on a FIFO or read a device
// without end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "files/place.h"

namespace cay::files {

struct ReadRange {
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // nullopt: to the end
};

// What there is to send: `head`, then `length` bytes of `file` from `offset`, or for `unsized` what
// readMore() gives until it gives nothing.
//
// Small pieces are read at once into `head`, so that the answer is one send and its length is what
// was really there: files below /proc say that they are empty, files below /sys that they are 4096
// bytes long.
struct Reading {
  std::string head;
  Fd file;
  uint64_t offset = 0;
  uint64_t length = 0;
  bool unsized = false;
};

// A range past the end of the file gives the bytes that are there. Only an unsized file asked for
// all of itself gives more than its size says.
Result<Reading> openForReading(const Place& place, std::string_view path, const ReadRange& range);

// For an unsized reading: fills the front of `buffer` and advances; 0 at the end.
Result<size_t> readMore(Reading& reading, std::span<char> buffer);

}  // namespace cay::files
