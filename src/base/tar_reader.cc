#include "base/tar_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include "base/text.h"

namespace cay {
namespace {

std::unexpected<Error> bad(std::string what) {
  return fail(Code::kInvalid, "bad tar archive: " + std::move(what));
}

// A text field ends at a NUL or at the field's end.
std::string_view text(std::span<const char> field) {
  return {field.data(), ::strnlen(field.data(), field.size())};
}

// Octal digits, padded by spaces and NULs; or, with the top bit set, a big-endian number (GNU).
std::optional<uint64_t> number(std::span<const char> field) {
  uint64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    for (size_t i = 0; i < field.size(); ++i) {
      const auto byte = static_cast<unsigned char>(field[i]);
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | (i == 0 ? byte & 0x7FU : byte);
    }
    return value;
  }
  std::string_view digits = text(field);
  digits = digits.substr(std::min(digits.find_first_not_of(' '), digits.size()));
  const size_t end = digits.find_last_not_of(' ');
  digits = digits.substr(0, end == std::string_view::npos ? 0 : end + 1);
  if (digits.empty()) return 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || stop != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// Some old programs summed signed characters.
bool checksumHolds(const TarHeader& header) {
  const auto stored = number(header.checksum);
  if (!stored) return false;
  const auto* bytes = reinterpret_cast<const signed char*>(&header);
  int64_t sum = 0;
  for (size_t i = 0; i < sizeof header; ++i) {
    const size_t at = i - offsetof(TarHeader, checksum);
    sum += at < sizeof header.checksum ? ' ' : bytes[i];
  }
  return *stored == tarChecksum(header) || static_cast<int64_t>(*stored) == sum;
}

std::string fullName(const TarHeader& header) {
  const bool posix = std::memcmp(header.magic, "ustar", sizeof header.magic) == 0;
  std::string name(posix ? text(header.prefix) : std::string_view());
  if (!name.empty()) name.push_back('/');
  return name.append(text(header.name));
}

std::optional<TarType> typeOf(char type, std::string_view path) {
  switch (type) {
    case '0':
    case '7':
      return TarType::kFile;
    case '\0':  // the old format marks directories by the name alone
      return path.ends_with('/') ? TarType::kDirectory : TarType::kFile;
    case '1':
      return TarType::kHardLink;
    case '2':
      return TarType::kSymlink;
    case '3':
    case '4':
      return TarType::kDevice;
    case '5':
      return TarType::kDirectory;
    case '6':
      return TarType::kFifo;
    default:
      return std::nullopt;
  }
}

// "1700000000.25"; whole seconds are enough.
std::optional<timespec> paxTime(std::string_view value) {
  int64_t seconds = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || (stop != value.data() + value.size() && *stop != '.')) {
    return std::nullopt;
  }
  return timespec{.tv_sec = seconds, .tv_nsec = 0};
}

uint64_t idOf(const std::optional<uint64_t>& own, const std::optional<uint64_t>& global,
              std::span<const char> field) {
  if (own || global) return own ? *own : *global;
  return number(field).value_or(kTarNoId);
}

constexpr std::string_view kXattr = "SCHILY.xattr.";

}  // namespace

Result<std::string> tarRelativePath(std::string_view name) {
  if (name.starts_with('/')) {
    return fail(Code::kInvalid, "the archive has an absolute name: " + quoted(name));
  }
  std::string out;
  for (const std::string_view part : split(name, '/')) {
    if (part == "..") {
      return fail(Code::kInvalid, "the archive has a name with '..': " + quoted(name));
    }
    if (part.empty() || part == ".") continue;
    if (!out.empty()) out.push_back('/');
    out.append(part);
  }
  return out;
}

unsigned tarChecksum(const TarHeader& header) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof header; ++i) {
    const size_t at = i - offsetof(TarHeader, checksum);
    sum += at < sizeof header.checksum ? ' ' : bytes[i];
  }
  return sum;
}

Result<> TarReader::feed(std::string_view bytes) {
  while (!bytes.empty() && state_ != State::kEnd) {
    if (state_ == State::kData) {
      CAY_TRY(onData(bytes));
    } else if (state_ == State::kPadding) {
      const size_t take = std::min<uint64_t>(left_, bytes.size());
      bytes.remove_prefix(take);
      left_ -= take;
      if (left_ == 0) state_ = State::kHeader;
    } else {
      std::string& into = state_ == State::kMeta ? meta_ : block_;
      const uint64_t whole = state_ == State::kMeta ? contentSize_ : kTarBlock;
      const size_t take = std::min<uint64_t>(whole - into.size(), bytes.size());
      into.append(bytes.substr(0, take));
      bytes.remove_prefix(take);
      if (into.size() < whole) continue;
      CAY_TRY(state_ == State::kMeta ? onMetaComplete() : onHeader());
    }
  }
  return {};
}

Result<> TarReader::finish() {
  if (state_ != State::kEnd) return bad("it is cut off");
  return {};
}

Result<> TarReader::onHeader() {
  TarHeader header;
  std::memcpy(&header, block_.data(), sizeof header);
  const bool zeros = block_.find_first_not_of('\0') == std::string::npos;
  block_.clear();
  if (zeros) {
    if (next_.path || next_.linkPath || next_.size) return bad("it ends after an extended header");
    state_ = State::kEnd;  // of the two zero blocks that POSIX wants, some programs write only one
    return {};
  }
  if (!checksumHolds(header)) return bad("wrong checksum in a header");
  const auto size = number(header.size);
  if (!size) return bad("a size is not a number");
  if (header.type == 'x' || header.type == 'g' || header.type == 'L' || header.type == 'K') {
    return beginMeta(header.type, *size);
  }
  return beginMember(header, next_.size.value_or(*size));
}

Result<> TarReader::beginMeta(char type, uint64_t size) {
  if (size > kTarMaxMeta) return bad("an extended header is too long");
  metaType_ = type;
  meta_.clear();
  contentSize_ = size;
  state_ = State::kMeta;
  return size == 0 ? onMetaComplete() : Result<>();
}

Result<> TarReader::onMetaComplete() {
  if (metaType_ == 'L') {
    next_.path = std::string(text(meta_));
  } else if (metaType_ == 'K') {
    next_.linkPath = std::string(text(meta_));
  } else {
    CAY_TRY(takePax(meta_));
  }
  meta_.clear();
  afterContent(contentSize_);
  return {};
}

Result<> TarReader::takePax(std::string_view records) {
  while (!records.empty()) {
    size_t length = 0;
    const auto [stop, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<size_t>(stop - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 3 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      return bad("a pax record is malformed");
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return bad("a pax record is malformed");
    CAY_TRY(takePaxRecord(record.substr(0, equals), record.substr(equals + 1)));
    records.remove_prefix(length);
  }
  return {};
}

Result<> TarReader::takePaxRecord(std::string_view key, std::string_view value) {
  if (key.starts_with("GNU.sparse.")) return bad("sparse files are not supported");
  if (key == "uid" || key == "gid") {
    Extended& to = metaType_ == 'g' ? always_ : next_;
    (key == "uid" ? to.uid : to.gid) = parseUint(value).value_or(kTarNoId);
    return {};
  }
  const bool used = key == "path" || key == "linkpath" || key == "size" || key == "mtime" ||
                    key.starts_with(kXattr);
  if (!used) return {};
  if (metaType_ == 'g') return bad("a global header sets " + quoted(key));
  if (key == "path") {
    next_.path = std::string(value);
  } else if (key == "linkpath") {
    next_.linkPath = std::string(value);
  } else if (key == "size") {
    next_.size = parseUint(value);
    if (!next_.size) return bad("a size is not a number");
  } else if (key == "mtime") {
    next_.mtime = paxTime(value);
    if (!next_.mtime) return bad("a time is not a number");
  } else {
    return takeXattr(key.substr(kXattr.size()), value);
  }
  return {};
}

// There may be any number of extended headers before a member.
Result<> TarReader::takeXattr(std::string_view name, std::string_view value) {
  constexpr size_t kOverhead = 64;  // of an entry in memory
  next_.xattrBytes += name.size() + value.size() + kOverhead;
  if (next_.xattrBytes > kTarMaxMeta) return bad("too many extended attributes");
  next_.xattrs.emplace_back(name, value);
  return {};
}

Result<> TarReader::beginMember(const TarHeader& header, uint64_t size) {
  TarMember member;
  member.path = next_.path ? *next_.path : fullName(header);
  member.linkPath = next_.linkPath ? *next_.linkPath : std::string(text(header.linkName));
  const auto type = typeOf(header.type, member.path);
  if (!type)
    return bad("unsupported type " + quoted({&header.type, 1}) + " of " + quoted(member.path));
  member.type = *type;
  if (member.path.size() > kTarMaxPath || member.linkPath.size() > kTarMaxPath) {
    return bad("a name is too long: " + quoted(member.path));
  }
  if (member.path.contains('\0') || member.linkPath.contains('\0')) {
    return bad("a name contains a NUL byte: " + quoted(member.path));
  }
  const auto mode = number(header.mode);
  const auto mtime = number(header.mtime);
  if (!mode) return bad("a mode is not a number: " + quoted(member.path));
  member.mode = static_cast<mode_t>(*mode & 07777);
  // 2^62 seconds are beyond every file system, and below every overflow.
  constexpr uint64_t kLatest = uint64_t{1} << 62;
  member.mtime = next_.mtime
                     ? *next_.mtime
                     : timespec{.tv_sec = static_cast<time_t>(std::min(mtime.value_or(0), kLatest)),
                                .tv_nsec = 0};
  if (size > kLatest) return bad("a size is absurd: " + quoted(member.path));
  member.size = member.type == TarType::kFile ? size : 0;  // links and directories have no content
  member.uid = idOf(next_.uid, always_.uid, header.uid);
  member.gid = idOf(next_.gid, always_.gid, header.gid);
  member.xattrs = std::move(next_.xattrs);
  next_ = {};

  CAY_TRY(sink_.member(member));
  contentSize_ = left_ = member.size;
  state_ = State::kData;
  if (left_ > 0) return {};
  CAY_TRY(sink_.memberEnd());
  afterContent(0);
  return {};
}

Result<> TarReader::onData(std::string_view& bytes) {
  const std::string_view piece = bytes.substr(0, std::min<uint64_t>(left_, bytes.size()));
  CAY_TRY(sink_.data(piece));
  bytes.remove_prefix(piece.size());
  left_ -= piece.size();
  if (left_ > 0) return {};
  CAY_TRY(sink_.memberEnd());
  afterContent(contentSize_);
  return {};
}

void TarReader::afterContent(uint64_t size) {
  left_ = tarPadding(size);
  state_ = left_ > 0 ? State::kPadding : State::kHeader;
}

}  // namespace cay
