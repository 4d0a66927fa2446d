#include "sandbox/output_log.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sandbox/wire.h"
#include "sys/io.h"

namespace cay::sandbox {
namespace {

constexpr char kMagic[8] = {'C', 'A', 'Y', 'L', 'O', 'G', '1', '\n'};
constexpr uint64_t kShapeAt = 8;      // headBytes, ringBytes
constexpr uint64_t kCountersAt = 24;  // totals, then lostFrom: one u64 for each stream
constexpr uint64_t kExitAt = 56;      // u32 length (0: none yet), then the record
constexpr uint64_t kMetaAt = 1024;    // u32 length, then the text
constexpr uint64_t kStreamsAt = 64ULL << 20;
constexpr size_t kMaxExitBytes = kMetaAt - kExitAt - sizeof(uint32_t);
constexpr size_t kMaxMetaBytes = kStreamsAt - kMetaAt - sizeof(uint32_t);

uint64_t streamAt(const LogShape& shape, StreamId stream) {
  return kStreamsAt + stream * (shape.headBytes + shape.ringBytes);
}

// Where byte `offset` of a stream lies in the file, and how many bytes follow it there without a
// jump.
struct Spot {
  uint64_t at;
  uint64_t room;
};
Spot spotOf(const LogShape& shape, StreamId stream, uint64_t offset) {
  const uint64_t start = streamAt(shape, stream);
  if (offset < shape.headBytes) return {start + offset, shape.headBytes - offset};
  const uint64_t inRing = (offset - shape.headBytes) % shape.ringBytes;
  return {start + shape.headBytes + inRing, shape.ringBytes - inRing};
}

std::string exitBytes(const ExitRecord& record) {
  Writer body;
  putExit(body, record);
  if (body.bytes().size() > kMaxExitBytes) {
    ExitRecord shorter = record;
    shorter.error.resize(kMaxExitBytes / 2);
    return exitBytes(shorter);
  }
  Writer whole;
  whole.put(std::string_view(body.bytes()));
  return whole.bytes();
}

Result<std::string> readExactly(int file, uint64_t at, size_t length) {
  std::string out(length, '\0');
  size_t have = 0;
  while (have < length) {
    CAY_ASSIGN(const size_t count, sys::preadSome(file, std::span(out).subspan(have), at + have));
    if (count == 0) return fail(Code::kInternal, "output log is cut short");
    have += count;
  }
  return out;
}

// Without waiting, should it be a pipe that somebody put there.
Result<Fd> openAt(int directory, const std::string& name, int flags) {
  constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd file(::openat(directory, name.c_str(), flags | kAlways, 0600));
  if (!file.valid()) return failSys("output log " + name, errno);
  return file;
}

}  // namespace

Kept keptOf(const LogShape& shape, uint64_t total) {
  if (total <= shape.headBytes + shape.ringBytes) return {total, total};
  return {shape.headBytes, total - shape.ringBytes};
}

Result<LogWriter> LogWriter::create(int directory, const std::string& name, const LogShape& shape,
                                    std::string_view meta, Existing existing) {
  if (meta.size() > kMaxMetaBytes)
    return fail(Code::kTooLarge, "the command is too long to record");
  // Not truncated: what lies behind the new totals is never read, and ext4 writes a file that was
  // truncated and closed to disk at once.
  const int flags = O_WRONLY | O_CREAT | (existing == Existing::kRefuse ? O_EXCL : 0);
  CAY_ASSIGN(Fd file, openAt(directory, name, flags));
  std::string start(kMetaAt, '\0');
  std::memcpy(start.data(), kMagic, sizeof kMagic);
  std::memcpy(start.data() + kShapeAt, &shape.headBytes, sizeof shape.headBytes);
  std::memcpy(start.data() + kShapeAt + 8, &shape.ringBytes, sizeof shape.ringBytes);
  std::memset(start.data() + kCountersAt + sizeof(Offsets), 0xFF, sizeof(Offsets));  // nothing lost
  Writer tail;
  tail.put(meta);
  start.append(tail.bytes());
  CAY_TRY(sys::pwriteAll(file.get(), start, 0));
  return LogWriter(std::move(file), shape);
}

void LogWriter::append(StreamId stream, std::string_view data) {
  totalsDirty_ = true;
  while (!data.empty()) {
    const Spot spot = spotOf(shape_, stream, totals_.at[stream]);
    const std::string_view piece = data.substr(0, spot.room);
    const bool whole = lostFrom_.at[stream] == kNoLimit;
    if (whole && !sys::pwriteAll(file_.get(), piece, spot.at)) {
      lostFrom_.at[stream] = totals_.at[stream];
    }
    totals_.at[stream] += piece.size();
    data.remove_prefix(piece.size());
  }
}

std::string LogWriter::counters() const {
  std::string bytes(reinterpret_cast<const char*>(totals_.at), sizeof totals_.at);
  return bytes.append(reinterpret_cast<const char*>(lostFrom_.at), sizeof lostFrom_.at);
}

Result<> LogWriter::saveTotals() {
  if (!totalsDirty_) return {};
  totalsDirty_ = false;
  return sys::pwriteAll(file_.get(), counters(), kCountersAt);
}

Result<> LogWriter::saveExit(const ExitRecord& record) {
  // The counters lie right before the exit record, so that both go in one write.
  totalsDirty_ = false;
  return sys::pwriteAll(file_.get(), counters() + exitBytes(record), kCountersAt);
}

Result<LogReader> LogReader::open(int directory, const std::string& name) {
  CAY_ASSIGN(Fd file, openAt(directory, name, O_RDONLY));
  CAY_ASSIGN(const std::string start, readExactly(file.get(), 0, kCountersAt));
  LogShape shape;
  std::memcpy(&shape.headBytes, start.data() + kShapeAt, sizeof shape.headBytes);
  std::memcpy(&shape.ringBytes, start.data() + kShapeAt + 8, sizeof shape.ringBytes);
  if (std::memcmp(start.data(), kMagic, sizeof kMagic) != 0 || shape.headBytes == 0 ||
      shape.ringBytes == 0) {
    return fail(Code::kInternal, "'" + name + "' is not an output log");
  }
  return LogReader(std::move(file), shape);
}

Result<size_t> LogReader::read(StreamId stream, uint64_t offset, std::span<char> buffer) const {
  const Spot spot = spotOf(shape_, stream, offset);
  return sys::preadSome(file_.get(), buffer.first(std::min<uint64_t>(buffer.size(), spot.room)),
                        spot.at);
}

Result<LogReader::Counters> LogReader::counters() const {
  Counters counters;
  CAY_ASSIGN(const std::string bytes,
             readExactly(file_.get(), kCountersAt, kStreams * 2 * sizeof(uint64_t)));
  std::memcpy(counters.totals.at, bytes.data(), sizeof counters.totals.at);
  std::memcpy(counters.lostFrom.at, bytes.data() + sizeof counters.totals.at,
              sizeof counters.lostFrom.at);
  return counters;
}

Result<std::optional<ExitRecord>> LogReader::exit() const {
  CAY_ASSIGN(const std::string bytes, readExactly(file_.get(), kExitAt, kMetaAt - kExitAt));
  Reader whole(bytes);
  const std::string_view body = whole.text();
  if (!whole.ok() || body.empty()) return std::nullopt;
  Reader in(body);
  ExitRecord record = getExit(in);
  if (!in.ok()) return std::nullopt;
  return record;
}

Result<std::string> LogReader::meta() const {
  CAY_ASSIGN(const std::string bytes, readExactly(file_.get(), kMetaAt, sizeof(uint32_t)));
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxMetaBytes) return fail(Code::kInternal, "output log has a broken header");
  return readExactly(file_.get(), kMetaAt + sizeof length, length);
}

Result<> writeLostExit(int directory, const std::string& name, const ExitRecord& record) {
  CAY_ASSIGN(const Fd file, openAt(directory, name, O_WRONLY));
  return sys::pwriteAll(file.get(), exitBytes(record), kExitAt);
}

}  // namespace cay::sandbox
