#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sandbox/line_log.h"
#include "sandbox/paths.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

// Many lines go to the file by one call, but no more than this is held in memory for it.
constexpr size_t kBatchBytes = 64 * 1024;

}  // namespace

Result<LineLogWriter> LineLogWriter::open(int directory, const std::string& path,
                                          const Shape& shape) {
  CAY_ASSIGN(Fd folder, openFolderAt(directory, path.c_str(), 0700));
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Code::kConflict, "another command writes the log of this job");
  }
  LineLogWriter writer(std::move(folder), shape);
  CAY_TRY(writer.resume());
  return writer;
}

Result<> LineLogWriter::resume() {
  CAY_ASSIGN(std::vector<uint64_t> segments, segmentsIn(folder_.get()));
  while (!segments.empty()) {
    CAY_ASSIGN(const bool taken, take(segments.back()));
    if (taken) {
      prune();
      return {};
    }
    // Its writer died over its first bytes.
    CAY_TRY(sys::unlinkAt(folder_.get(), std::to_string(segments.back()).c_str()));
    segments.pop_back();
  }
  return begin(0);
}

Result<bool> LineLogWriter::take(uint64_t number) {
  CAY_ASSIGN(LineLogReader past, LineLogReader::open(folder_.get(), "."));
  CAY_ASSIGN(const bool entered, past.enter(number));
  if (!entered) return false;
  while (true) {
    CAY_ASSIGN(const auto found, past.peek());
    if (!found) break;
    past.pass(*found);
  }
  CAY_ASSIGN(file_,
             sys::openAt(folder_.get(), std::to_string(number).c_str(), O_RDWR | O_NOFOLLOW));
  number_ = number;
  at_ = past.at_;
  given_ = past.given_;
  lastTimeUs_ = past.lastTimeUs_;
  CAY_TRY(sys::truncateFd(file_.get(), at_));
  return true;
}

Result<> LineLogWriter::begin(uint64_t number) {
  const std::string name = std::to_string(number);
  CAY_ASSIGN(Fd file, sys::openAt(folder_.get(), name.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  std::string header;
  putSegmentHeader(header, {.bytesBefore = given_, .lastTimeUs = lastTimeUs_});
  if (auto written = sys::pwriteAll(file.get(), header, 0); !written) {
    (void)sys::unlinkAt(folder_.get(), name.c_str());
    return written;
  }
  file_ = std::move(file);
  number_ = number;
  at_ = kSegmentHeaderBytes;
  lost_ = 0;  // the header tells
  prune();
  return {};
}

void LineLogWriter::prune() const {
  const uint64_t head = std::max<uint64_t>(1, shape_.headBytes / shape_.segmentBytes);
  const uint64_t tail = std::max<uint64_t>(2, shape_.tailBytes / shape_.segmentBytes);
  const auto segments = segmentsIn(folder_.get());
  if (!segments) return;  // once more with the next one
  for (const uint64_t number : *segments) {
    if (number < head || number + tail > number_) continue;
    (void)sys::unlinkAt(folder_.get(), std::to_string(number).c_str());
  }
}

void LineLogWriter::append(StreamId stream, std::string_view bytes, int64_t wallUs) {
  std::string& waiting = waiting_[stream];
  while (!bytes.empty()) {
    const size_t room = kMaxLineBytes - waiting.size();
    const size_t end = bytes.substr(0, room + 1).find('\n');
    const bool ends = end != std::string_view::npos;
    if (!ends && bytes.size() <= room) {
      waiting.append(bytes);
      break;
    }
    const std::string_view piece = bytes.substr(0, ends ? end : room);
    if (waiting.empty()) {
      put(stream, piece, !ends, wallUs);
    } else {
      waiting.append(piece);
      put(stream, waiting, !ends, wallUs);
      waiting.clear();
    }
    bytes.remove_prefix(piece.size() + (ends ? 1 : 0));
  }
  commit();
  stuck_ = false;
}

void LineLogWriter::flush(int64_t wallUs) {
  for (const StreamId stream : {kStdout, kStderr}) {
    if (waiting_[stream].empty()) continue;
    put(stream, waiting_[stream], /*continues=*/true, wallUs);
    waiting_[stream].clear();
  }
  if (lost_ > 0 && makeRoom()) tellLost(wallUs);
  commit();
  stuck_ = false;
}

bool LineLogWriter::waiting() const {
  return !waiting_[kStdout].empty() || !waiting_[kStderr].empty();
}

bool LineLogWriter::makeRoom() {
  if (batch_.size() >= kBatchBytes || at_ + batch_.size() >= shape_.segmentBytes) commit();
  if (at_ >= shape_.segmentBytes && !stuck_) stuck_ = !begin(number_ + 1).has_value();
  if (batch_.empty()) timeBeforeBatch_ = lastTimeUs_;
  return !stuck_;
}

void LineLogWriter::put(StreamId stream, std::string_view text, bool continues, int64_t wallUs) {
  const LogLine line{
      .timeUs = 0, .stream = stream, .continues = continues, .dropped = 0, .text = text};
  if (!makeRoom()) {
    lost_ += bytesOf(line);
    given_ += bytesOf(line);
    lastTimeUs_ = std::max(wallUs, lastTimeUs_ + 1);
    return;
  }
  if (lost_ > 0) tellLost(wallUs);
  encode(line, wallUs);
}

void LineLogWriter::tellLost(int64_t wallUs) {
  LogLine line;
  line.dropped = std::exchange(lost_, 0);
  if (line.dropped == 0) return;  // the header of a new segment has told
  given_ -= line.dropped;
  encode(line, wallUs);
}

void LineLogWriter::encode(LogLine line, int64_t wallUs) {
  line.timeUs = lastTimeUs_ = std::max(wallUs, lastTimeUs_ + 1);
  putLine(batch_, line);
  batchBytes_ += bytesOf(line);
  given_ += bytesOf(line);
}

void LineLogWriter::commit() {
  if (batch_.empty()) return;
  if (sys::pwriteAll(file_.get(), batch_, at_)) {
    at_ += batch_.size();
  } else {
    keepWholeRecords();
  }
  batch_.clear();
  batchBytes_ = 0;
}

void LineLogWriter::keepWholeRecords() {
  const auto info = sys::statFd(file_.get());
  const uint64_t size = info ? static_cast<uint64_t>(info->st_size) : at_;
  std::string_view written = std::string_view(batch_).substr(0, size > at_ ? size - at_ : 0);
  lost_ += batchBytes_;
  int64_t time = timeBeforeBatch_;
  while (const auto found = getLine(written, time)) {
    at_ += found->size;
    lost_ -= bytesOf(found->line);
    time = found->line.timeUs;
    written.remove_prefix(found->size);
  }
  // Nobody has read what was not whole. Where it cannot be taken away, the segment ends with it.
  if (size > at_ && !sys::truncateFd(file_.get(), at_)) at_ = shape_.segmentBytes;
}

}  // namespace cay::sandbox
