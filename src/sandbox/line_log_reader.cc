#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sandbox/line_log.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr size_t kWindowBytes = 2 * (kRecordHeaderBytes + kMaxLineBytes);
// The writer may remove segments faster than we open them, but not for ever.
constexpr int kMostOvertakings = 16;

}  // namespace

Result<LineLogReader> LineLogReader::open(int directory, const std::string& path) {
  CAY_ASSIGN(Fd folder, sys::openAt(directory, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return LineLogReader(std::move(folder));
}

Result<std::optional<FoundLine>> LineLogReader::peek() {
  const auto known = [&]() -> std::optional<FoundLine> {
    if (at_ < windowAt_ || at_ - windowAt_ > window_.size()) return std::nullopt;
    return getLine(std::string_view(window_).substr(at_ - windowAt_), lastTimeUs_);
  };
  if (const auto found = known()) return found;
  window_.resize(kWindowBytes);
  windowAt_ = at_;
  auto count = sys::preadSome(file_.get(), window_, at_);
  window_.resize(count.value_or(0));
  if (!count) return std::unexpected(std::move(count).error());
  return known();
}

void LineLogReader::pass(const FoundLine& found) {
  at_ += found.size;
  given_ += bytesOf(found.line);
  lastTimeUs_ = found.line.timeUs;
}

Result<bool> LineLogReader::enter(uint64_t number) {
  CAY_ASSIGN(Fd file,
             sys::openAt(folder_.get(), std::to_string(number).c_str(), O_RDONLY | O_NOFOLLOW));
  char start[kSegmentHeaderBytes];
  CAY_ASSIGN(const size_t count, sys::preadSome(file.get(), start, 0));
  const auto header = getSegmentHeader({start, count});
  if (!header) return false;
  file_ = std::move(file);
  number_ = number;
  at_ = kSegmentHeaderBytes;
  gap_ = header->bytesBefore - std::min(header->bytesBefore, given_);
  given_ = header->bytesBefore;
  // Of a record that is gone, where there is a gap, and so a time that no other record has.
  lastTimeUs_ = header->lastTimeUs;
  window_.clear();
  return true;
}

Result<bool> LineLogReader::enterNextSegment() {
  for (int attempt = 0; attempt < kMostOvertakings; ++attempt) {
    CAY_ASSIGN(const auto segments, segmentsIn(folder_.get()));
    auto following = file_.valid() ? std::ranges::upper_bound(segments, number_) : segments.begin();
    if (following == segments.end()) return false;
    // Now that there is another one, the present one is whole: what came to it meanwhile is first.
    if (file_.valid()) {
      CAY_ASSIGN(const auto more, peek());
      if (more) return true;
    }
    auto entered = enter(*following);
    // One that cannot be read is passed over, unless it is just being begun.
    while (entered && !*entered && ++following != segments.end()) entered = enter(*following);
    if (entered || entered.error().sys != ENOENT) return entered;
  }
  return false;
}

Result<std::optional<LogLine>> LineLogReader::next() {
  while (true) {
    if (gap_ > 0) {
      return LogLine{.timeUs = lastTimeUs_,
                     .stream = kStdout,
                     .continues = false,
                     .dropped = std::exchange(gap_, 0),
                     .text = {}};
    }
    if (file_.valid()) {
      CAY_ASSIGN(const auto found, peek());
      if (found) {
        pass(*found);
        return found->line;
      }
    }
    CAY_ASSIGN(const bool moved, enterNextSegment());
    if (!moved) return std::nullopt;
  }
}

Result<> LineLogReader::seekTail(uint64_t records) {
  CAY_ASSIGN(const auto segments, segmentsIn(folder_.get()));
  file_.reset();
  uint64_t have = 0;
  for (auto number = segments.rbegin(); number != segments.rend(); ++number) {
    const auto entered = enter(*number);
    if (!entered || !*entered) {
      if (file_.valid()) break;  // what is before it is gone by now
      continue;
    }
    gap_ = 0;
    const uint64_t given = given_;
    const int64_t lastTimeUs = lastTimeUs_;
    for (auto found = peek(); found && *found; found = peek(), ++have) pass(**found);
    at_ = kSegmentHeaderBytes;
    given_ = given;
    lastTimeUs_ = lastTimeUs;
    if (have >= records) break;
  }
  for (; have > records; --have) CAY_TRY(next());
  return {};
}

}  // namespace cay::sandbox
