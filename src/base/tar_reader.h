// TarReader: an incremental parser for tar archives. Bytes go in, members come out; no I/O of its
// own.
//
// Reads POSIX ustar, pax (path, linkpath, size, mtime, uid, gid, extended attributes), GNU long
// names and the old format without a magic. Sparse files, multi-volume archives and unknown types
// are kInvalid, as are a bad checksum, a member name beyond kTarMaxPath and an archive that ends
// before its end mark. Bytes after the end mark are ignored. Memory is bounded by kTarMaxMeta,
// whatever the archive says.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/tar_format.h"

namespace cay {

inline constexpr size_t kTarMaxPath = 4096;
inline constexpr size_t kTarMaxMeta = size_t{1024} * 1024;  // one pax or long-name record

inline constexpr uint64_t kTarNoId = UINT64_MAX;  // an owner that is not a number

enum class TarType { kFile, kDirectory, kSymlink, kHardLink, kFifo, kDevice };

struct TarMember {
  TarType type = TarType::kFile;
  std::string path;      // as in the archive
  std::string linkPath;  // of links
  uint64_t size = 0;     // 0 for everything but files
  mode_t mode = 0;
  timespec mtime{};
  uint64_t uid = 0;
  uint64_t gid = 0;
  std::vector<std::pair<std::string, std::string>> xattrs;  // together at most kTarMaxMeta
};

// "./a//b/" as "a/b"; empty for the folder itself. kInvalid for what would leave it.
Result<std::string> tarRelativePath(std::string_view name);

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
  Result<> takeXattr(std::string_view name, std::string_view value);
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
  struct Extended {
    std::optional<std::string> path;
    std::optional<std::string> linkPath;
    std::optional<uint64_t> size;
    std::optional<timespec> mtime;
    std::optional<uint64_t> uid;
    std::optional<uint64_t> gid;
    std::vector<std::pair<std::string, std::string>> xattrs;
    size_t xattrBytes = 0;
  };
  Extended next_;
  Extended always_;  // what global headers say about all that follow: owners alone
};

}  // namespace cay
