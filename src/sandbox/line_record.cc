#include "sandbox/line_record.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "sys/file.h"

namespace cay::sandbox {
namespace {

constexpr std::string_view kMagic = "CAYLINE1";
enum Flag : uint8_t { kContinues = 1, kDropped = 2 };
constexpr size_t kHeaderCheckAt = 24;
constexpr size_t kRecordCheckAt = 14;
constexpr int64_t kLastTimeUs = int64_t{1} << 62;  // so that there is always a later one

template <typename Integer>
void putInteger(std::string& out, Integer value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Integer>
Integer integerAt(std::string_view bytes, size_t at) {
  Integer value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

constexpr uint32_t kNothingChecked = 2166136261;
uint32_t checkOf(std::string_view bytes, uint32_t before = kNothingChecked) {
  for (const char byte : bytes) before = (before ^ static_cast<uint8_t>(byte)) * 16777619;
  return before;
}

}  // namespace

void putSegmentHeader(std::string& out, const SegmentHeader& header) {
  const size_t start = out.size();
  out.append(kMagic);
  putInteger(out, header.bytesBefore);
  putInteger(out, header.lastTimeUs);
  putInteger(out, checkOf(std::string_view(out).substr(start)));
}

std::optional<SegmentHeader> getSegmentHeader(std::string_view bytes) {
  if (bytes.size() < kSegmentHeaderBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  const SegmentHeader header{.bytesBefore = integerAt<uint64_t>(bytes, 8),
                             .lastTimeUs = integerAt<int64_t>(bytes, 16)};
  if (header.lastTimeUs < 0 || header.lastTimeUs > kLastTimeUs) return std::nullopt;
  if (integerAt<uint32_t>(bytes, kHeaderCheckAt) != checkOf(bytes.substr(0, kHeaderCheckAt))) {
    return std::nullopt;
  }
  return header;
}

void putLine(std::string& out, const LogLine& line) {
  const bool isLine = line.dropped == 0;
  const auto flags =
      static_cast<uint8_t>(isLine ? (line.continues ? kContinues : 0) : uint8_t{kDropped});
  const std::string_view text =
      isLine ? line.text
             : std::string_view(reinterpret_cast<const char*>(&line.dropped), sizeof line.dropped);
  const size_t start = out.size();
  putInteger(out, line.timeUs);
  putInteger(out, static_cast<uint8_t>(line.stream));
  putInteger(out, flags);
  putInteger(out, static_cast<uint32_t>(text.size()));
  putInteger(out, checkOf(text, checkOf(std::string_view(out).substr(start))));
  out.append(text);
}

std::optional<FoundLine> getLine(std::string_view bytes, int64_t after) {
  if (bytes.size() < kRecordHeaderBytes) return std::nullopt;
  FoundLine found{};
  LogLine& line = found.line;
  line.timeUs = integerAt<int64_t>(bytes, 0);
  const auto stream = integerAt<uint8_t>(bytes, 8);
  const auto flags = integerAt<uint8_t>(bytes, 9);
  const auto size = integerAt<uint32_t>(bytes, 10);
  if (line.timeUs <= after || line.timeUs > kLastTimeUs) return std::nullopt;
  if (stream >= kStreams || flags > kDropped) return std::nullopt;
  if (size > kMaxLineBytes || bytes.size() - kRecordHeaderBytes < size) return std::nullopt;
  const std::string_view text = bytes.substr(kRecordHeaderBytes, size);
  if (integerAt<uint32_t>(bytes, kRecordCheckAt) !=
      checkOf(text, checkOf(bytes.substr(0, kRecordCheckAt)))) {
    return std::nullopt;
  }
  line.stream = static_cast<StreamId>(stream);
  line.continues = flags == kContinues;
  found.size = kRecordHeaderBytes + size;
  if (flags != kDropped) {
    line.text = text;
    return found;
  }
  if (size != sizeof line.dropped) return std::nullopt;
  line.dropped = integerAt<uint64_t>(text, 0);
  if (line.dropped == 0) return std::nullopt;
  return found;
}

uint64_t bytesOf(const LogLine& line) {
  if (line.dropped > 0) return line.dropped;
  return line.text.size() + (line.continues ? 0 : 1);
}

Result<std::vector<uint64_t>> segmentsIn(int folder) {
  CAY_ASSIGN(const auto entries, sys::readDirectory(folder));
  std::vector<uint64_t> out;
  for (const sys::DirEntry& entry : entries) {
    if (const auto number = parseUint(entry.name); number && std::to_string(*number) == entry.name)
      out.push_back(*number);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace cay::sandbox
