// The output of one exec in one file: what the keeper writes and the host reads.
//
// A sparse file. First a header of fixed size (sizes, how many bytes each stream has had, the exit
// record), then the meta text of the spec, then for each stream a head part, which keeps the
// beginning, and a ring, which keeps the newest bytes once the head is full. So a stream of up to
// head + ring bytes is kept whole, and of a longer one the beginning and the end; what fell out
// between is a gap that readers are told of. docs/formats.md has the layout byte by byte.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/exec.h"

namespace cay::sandbox {

struct LogShape {
  uint64_t headBytes = 8 << 20;
  uint64_t ringBytes = 8 << 20;
  bool operator==(const LogShape&) const = default;
};

// Where the bytes of a stream that has had `total` bytes can still be read: [0, headEnd) and
// [tailStart, total). The two meet while nothing is lost.
struct Kept {
  uint64_t headEnd;
  uint64_t tailStart;
};
Kept keptOf(const LogShape& shape, uint64_t total);

class LogWriter {
 public:
  // Creates `name` in the directory; fails if it exists, unless it is a log to be overwritten.
  enum class Existing { kRefuse, kOverwrite };
  static Result<LogWriter> create(int directory, const std::string& name, const LogShape& shape,
                                  std::string_view meta, Existing existing);

  // Appends to a stream; the totals reach the file with the next saveTotals or saveExit. From the
  // first write that fails on, the stream's bytes are only counted.
  void append(StreamId stream, std::string_view data);
  Result<> saveTotals();
  Result<> saveExit(const ExitRecord& record);

  [[nodiscard]] uint64_t total(StreamId stream) const { return totals_.at[stream]; }
  [[nodiscard]] const Offsets& totals() const { return totals_; }
  // Where the first byte that could not be stored was; kNoLimit if all could.
  [[nodiscard]] const Offsets& lostFrom() const { return lostFrom_; }

 private:
  LogWriter(Fd file, LogShape shape) : file_(std::move(file)), shape_(shape) {}

  [[nodiscard]] std::string counters() const;

  Fd file_;
  LogShape shape_;
  Offsets totals_;
  Offsets lostFrom_{{kNoLimit, kNoLimit}};
  bool totalsDirty_ = false;
};

// Reads a log that may still be growing. The caller knows from the keeper how far it reaches.
class LogReader {
 public:
  static Result<LogReader> open(int directory, const std::string& name);

  // At most buffer.size() bytes of `stream` from `offset` on, in one contiguous piece; the caller
  // keeps to offsets below the total and outside the gap.
  Result<size_t> read(StreamId stream, uint64_t offset, std::span<char> buffer) const;

  // As the file has them; those of a running exec are the keeper's to tell.
  struct Counters {
    Offsets totals;
    Offsets lostFrom;
  };
  [[nodiscard]] Result<Counters> counters() const;
  [[nodiscard]] Result<std::optional<ExitRecord>> exit() const;
  [[nodiscard]] Result<std::string> meta() const;
  [[nodiscard]] const LogShape& shape() const { return shape_; }

 private:
  LogReader(Fd file, LogShape shape) : file_(std::move(file)), shape_(shape) {}

  Fd file_;
  LogShape shape_;
};

// Records an end that the keeper could not write because it died.
Result<> writeLostExit(int directory, const std::string& name, const ExitRecord& record);

}  // namespace cay::sandbox
