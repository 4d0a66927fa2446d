// One layer of an image, a tar archive from anybody, into an empty folder.
//
// Owners, modes with setuid bits, times, hard links and harmless extended attributes are kept;
// whiteouts become those of overlayfs. No name leads out of the folder, through a link or
// otherwise: the first one that tries ends it. Device nodes are not made, since sandboxes have a
// /dev of their own and could not use others; what lies below one is hidden. Blocking.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/tar_reader.h"

namespace cay::layers {

struct UnpackLimits {
  uint64_t bytes = uint64_t{64} << 30;  // of the archive
  uint64_t entries = 4'000'000;         // members, and the folders that they imply
};

enum class Owners : uint8_t {
  kKept,  // as in the archive; takes root
  kOwn,   // all is ours
};

class LayerUnpack final : private TarSink {
 public:
  LayerUnpack(Fd folder, Owners owners, const UnpackLimits& limits = {});

  Result<> write(std::string_view bytes);
  // The archive is complete: folders get what could not be theirs while they were filled.
  Result<> finish();

 private:
  struct Attributes {
    mode_t mode = 0;
    uid_t uid = 0;
    gid_t gid = 0;
    std::optional<timespec> mtime = std::nullopt;
  };
  struct Spot {
    int dir = -1;      // valid until the next open()
    std::string path;  // of the archive, cleaned
    std::string name;  // its last part
  };
  struct OpenFile {
    Fd file;
    TarMember member;
  };

  Result<> member(const TarMember& member) override;
  Result<> data(std::string_view piece) override;
  Result<> memberEnd() override;

  Result<> makeMember(const TarMember& member, const Spot& at);
  Result<> makeFolder(const TarMember& member, const Spot& at);
  Result<> makeFile(const TarMember& member, const Spot& at);
  Result<> makeFifo(const TarMember& member, const Spot& at);
  Result<> makeSymlink(const TarMember& member, const Spot& at);
  Result<> makeHardLink(const TarMember& member, const Spot& at);
  Result<> hide(const Spot& at);

  Result<> countEntry();
  // The folder at a cleaned path. kInvalid if that leads through anything but folders.
  enum class Missing : uint8_t { kFail, kMake };
  Result<int> open(const std::string& path, Missing missing);
  Result<Fd> makePath(const std::string& path, Missing missing);
  Result<> makeEmptyFolder(int dir, const std::string& name);
  Result<> makeOpaque(int dir, const char* name);
  Result<> clearTheWay(const Spot& at);
  Result<> remember(const std::string& path, const Attributes& attributes);
  Result<Attributes> attributesOf(const TarMember& member) const;
  using Xattrs = decltype(TarMember::xattrs);
  [[nodiscard]] Result<> give(int fd, const Attributes& attributes, const Xattrs& xattrs) const;

  const Fd top_;
  const Owners owners_;
  const UnpackLimits limits_;
  uint64_t bytes_ = 0;
  uint64_t entries_ = 0;
  std::optional<OpenFile> file_;
  // The folder that was opened last: the next member is mostly in the same.
  std::string lastPath_;
  Fd last_;
  std::map<std::string, Attributes> folders_;  // by path; a folder comes before what is in it
  size_t folderBytes_ = 0;                     // of those paths
  TarReader reader_{*this};
};

}  // namespace cay::layers
