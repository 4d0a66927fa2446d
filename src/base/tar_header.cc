#include "base/tar_header.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/tar_format.h"
#include "base/text.h"

namespace cay {
namespace {

// Leaves a NUL at the end; false, with zeros written, if the number needs more digits.
bool putOctal(std::span<char> field, uint64_t value) {
  const size_t digits = field.size() - 1;
  const bool fits = value >> (3 * digits) == 0;
  for (size_t i = digits; i-- > 0; value >>= 3) {
    field[i] = static_cast<char>('0' + (fits ? value & 7 : 0));
  }
  field[digits] = '\0';
  return fits;
}

bool putText(std::span<char> field, std::string_view text) {
  std::ranges::copy(text.substr(0, field.size()), field.begin());
  return text.size() <= field.size();
}

// "<length> key=value\n", where the length counts itself.
void appendRecord(std::string& out, std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest;
  while (length != rest + std::to_string(length).size()) {
    length = rest + std::to_string(length).size();
  }
  out.append(std::to_string(length)).append(" ").append(key).append("=").append(value).append("\n");
}

void appendBlock(std::string& out, TarHeader& header) {
  std::memcpy(header.magic, "ustar", sizeof header.magic);
  std::memcpy(header.version, "00", sizeof header.version);
  putOctal(std::span(header.checksum).first<7>(), tarChecksum(header));
  header.checksum[7] = ' ';
  out.append(reinterpret_cast<const char*>(&header), sizeof header);
}

void appendPadding(std::string& out, uint64_t size) {
  out.append(tarPadding(size), '\0');
}

char typeFlag(mode_t mode) {
  if (S_ISDIR(mode)) return '5';
  return S_ISLNK(mode) ? '2' : '0';
}

}  // namespace

void appendTarHeader(std::string& out, std::string_view name, std::string_view linkTarget,
                     const struct stat& stat) {
  TarHeader header{};
  std::string records;
  const uint64_t size = S_ISREG(stat.st_mode) ? static_cast<uint64_t>(stat.st_size) : 0;
  if (!putText(header.name, name)) appendRecord(records, "path", name);
  if (!putText(header.linkName, linkTarget)) appendRecord(records, "linkpath", linkTarget);
  if (!putOctal(header.size, size)) appendRecord(records, "size", std::to_string(size));
  if (!putOctal(header.uid, stat.st_uid)) appendRecord(records, "uid", std::to_string(stat.st_uid));
  if (!putOctal(header.gid, stat.st_gid)) appendRecord(records, "gid", std::to_string(stat.st_gid));
  putOctal(header.mode, stat.st_mode & 07777);
  putOctal(header.mtime, static_cast<uint64_t>(std::max<time_t>(stat.st_mtim.tv_sec, 0)));
  header.type = typeFlag(stat.st_mode);
  if (!records.empty()) {
    if (!isValidUtf8(records)) records.insert(0, "21 hdrcharset=BINARY\n");
    TarHeader extended{};
    putText(extended.name, "././@PaxHeader");
    putOctal(extended.mode, 0644);
    putOctal(extended.uid, 0);
    putOctal(extended.gid, 0);
    putOctal(extended.size, records.size());
    putOctal(extended.mtime, 0);
    extended.type = 'x';
    appendBlock(out, extended);
    out.append(records);
    appendPadding(out, records.size());
  }
  appendBlock(out, header);
}

void appendTarEnd(std::string& out) {
  out.append(2 * kTarBlock, '\0');
}

}  // namespace cay
