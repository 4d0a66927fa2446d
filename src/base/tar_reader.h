// TarReader: an incremental parser for tar archives. Bytes go in, members come out; no I/O of its
// own.
//
// Reads POSIX ustar, pax (path, linkpath, size, mtime), GNU long names and the old format without a
// magic. Sparse files, multi-volume archives and unknown types are kInvalid, as are a bad checksum,
// a member name beyond kTarMaxPath and an archive that ends before its end mark. Bytes after the
// end mark are ignored. Memory is bounded by kTarMaxMeta, whatever the archive says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/tar_format.h"

namespace cay {

inline constexpr size_t kTarMaxPath = 4096;
inline constexpr size_t kTarMaxMeta = size_t{1024} * 1024;  // one pax or long-name record

enum class TarType { kFile, kDirectory, kSymlink, kHardLink, kSpecial };

struct TarMember {
  TarType type = TarType::kFile;
  std::string path;      // as in the archive
  std::string linkPath;  // of links
  uint64_t size = 0;     // 0 for everything but files
  mode_t mode = 0;
  timespec mtime{};
};

// Gets the members in order: member(), then for a file its bytes in pieces, then memberEnd(). The
// first error ends the reading.
class TarSink {
 public:
  virtual ~TarSink() = default;
  virtual Result<> member(const TarMember& member) = 0;
  virtual Result<> data(std::string_view piece) = 0;
  virtual Result<> memberEnd() = 0;
};

class TarReader {
 public:
  explicit TarReader(TarSink& sink) : sink_(sink) {}

  Result<> feed(std::string_view bytes);
  // No more bytes will come.
  Result<> finish();

 private:
  enum class State { kHeader, kMeta, kData, kPadding, kEnd };

  Result<> onHeader();
  Result<> onMetaComplete();
  Result<> onData(std::string_view& bytes);
  Result<> beginMember(const TarHeader& header, uint64_t size);
  Result<> beginMeta(char type, uint64_t size);
  Result<> takePax(std::string_view records);
  Result<> takePaxRecord(std::string_view key, std::string_view value);
  // Skips to the next block after `size` bytes have been read.
  void afterContent(uint64_t size);

  TarSink& sink_;
  State state_ = State::kHeader;
  std::string block_;  // a header, while it arrives
  std::string meta_;   // a pax or long-name record, while it arrives
  char metaType_ = 0;
  uint64_t left_ = 0;  // bytes of content or padding still to come
  uint64_t contentSize_ = 0;

  // What records before a member say about it.
  std::optional<std::string> path_;
  std::optional<std::string> linkPath_;
  std::optional<uint64_t> size_;
  std::optional<timespec> mtime_;
};

}  // namespace cay
