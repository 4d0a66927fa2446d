// The bytes of a job's log (line_log.h): what a segment begins with, and its records.
//
//   segment  "CAYLINE1", u64 bytes the log was given before it, i64 time of the last record before,
//            u32 check
//   record   i64 time in µs, u8 stream, u8 flags, u32 size, u32 check, text (with kDropped: a u64)
//
// What a crash cut off, or what reached the disk as zeros, is found out by the check: FNV-1a of all
// other bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sandbox/exec.h"

namespace cay::sandbox {

struct LogLine {
  int64_t timeUs = 0;
  StreamId stream = kStdout;
  // Its line does not end here: the stream's next record goes on with it, unless the stream is
  // over. That record may be empty: then it is the line end alone.
  bool continues = false;
  uint64_t dropped = 0;   // > 0: not a line, but so many bytes that are gone
  std::string_view text;  // without its line end
};

inline constexpr size_t kMaxLineBytes = 64 * 1024;  // longer ones are cut
inline constexpr size_t kSegmentHeaderBytes = 28;
inline constexpr size_t kRecordHeaderBytes = 18;

struct SegmentHeader {
  uint64_t bytesBefore = 0;
  int64_t lastTimeUs = 0;
};

void putSegmentHeader(std::string& out, const SegmentHeader& header);
std::optional<SegmentHeader> getSegmentHeader(std::string_view bytes);

void putLine(std::string& out, const LogLine& line);

struct FoundLine {
  LogLine line;  // its text lies in the bytes
  size_t size;   // of the whole record
};
// The record that the bytes begin with; nullopt if it is not there as a whole, or is none that
// could follow one of the time `after`.
std::optional<FoundLine> getLine(std::string_view bytes, int64_t after);

// How many bytes of output a record stands for, line ends included.
uint64_t bytesOf(const LogLine& line);

// The numbers of the segments in a folder, rising.
Result<std::vector<uint64_t>> segmentsIn(int folder);

}  // namespace cay::sandbox
