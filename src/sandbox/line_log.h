// The log of a job: what its command wrote, line by line, both streams in the order in which the
// keeper read them. Written by the keeper alone, so it goes on while nobody else lives.
//
//   <n>   segments, from 0 (line_record.h)
//
// Times are unique and rise, also over a restart and a clock that jumps back: then they go on from
// the last one, and so run ahead of the clock until it has caught up. The first `headBytes` are
// kept for ever, so that a reader who has seen some records finds the same ones again; of the rest
// the newest `tailBytes`. What fell out, or found no place on the disk, is told as a record with
// the number of bytes. Bytes stay bytes here: a line may hold anything but a line end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/line_record.h"

namespace cay::sandbox {

class LineLogWriter {
 public:
  // Whole segments, one of the head and two of the tail at the least; a segment may be longer by
  // one record.
  struct Shape {
    uint64_t headBytes = 8 << 20;
    uint64_t tailBytes = 24 << 20;
    uint64_t segmentBytes = 4 << 20;
  };

  // Makes the folder if it is missing, else goes on where its last writer stopped, at whatever
  // point that was. kConflict if another writer lives.
  static Result<LineLogWriter> open(int directory, const std::string& path, const Shape& shape);

  // An unfinished line waits for its end, for kMaxLineBytes of it or for flush().
  void append(StreamId stream, std::string_view bytes, int64_t wallUs);
  void flush(int64_t wallUs);
  // A line waits for its end.
  [[nodiscard]] bool waiting() const;

 private:
  LineLogWriter(Fd folder, const Shape& shape) : folder_(std::move(folder)), shape_(shape) {}

  Result<> resume();
  // True if that segment is one to go on with.
  Result<bool> take(uint64_t number);
  Result<> begin(uint64_t number);
  void prune() const;
  // False if there is no place for a record.
  bool makeRoom();
  void put(StreamId stream, std::string_view text, bool continues, int64_t wallUs);
  void tellLost(int64_t wallUs);
  void encode(LogLine line, int64_t wallUs);
  void commit();
  // After a write that failed.
  void keepWholeRecords();

  Fd folder_;
  Shape shape_;
  Fd file_;
  uint64_t number_ = 0;
  uint64_t at_ = 0;     // where its next record goes
  uint64_t given_ = 0;  // bytes of output, kept or not
  uint64_t lost_ = 0;   // the newest of them that found no place, and nobody was told of yet
  int64_t lastTimeUs_ = 0;
  std::string waiting_[kStreams];
  std::string batch_;  // records on their way to the file
  int64_t timeBeforeBatch_ = 0;
  uint64_t batchBytes_ = 0;  // of output in it
  bool stuck_ = false;       // no new segment can be had during this append
};

class LineLogReader {
 public:
  static Result<LineLogReader> open(int directory, const std::string& path);

  // The next record, whose text is valid until the next call; nullopt: there is no more now.
  Result<std::optional<LogLine>> next();
  // Goes to where so many records are left till the present end.
  Result<> seekTail(uint64_t records);

 private:
  friend class LineLogWriter;
  explicit LineLogReader(Fd folder) : folder_(std::move(folder)) {}

  // False if there is none now.
  Result<bool> enterNextSegment();
  Result<bool> enter(uint64_t number);
  Result<std::optional<FoundLine>> peek();
  void pass(const FoundLine& found);

  Fd folder_;
  Fd file_;
  uint64_t number_ = 0;
  uint64_t at_ = 0;         // of the next record in the segment
  uint64_t given_ = 0;      // bytes of output up to there
  int64_t lastTimeUs_ = 0;  // of the record before it
  uint64_t gap_ = 0;        // to be told before it
  std::string window_;      // a part of the segment, from windowAt_ on
  uint64_t windowAt_ = 0;
};

}  // namespace cay::sandbox
