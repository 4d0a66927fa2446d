// Unpacking an archive below a directory, such that no archive can write anywhere else. Blocking.
//
// - Names that are absolute or contain ".." are kInvalid. Every directory on the way to a member is
// opened one
//   by one, from the target folder down, and never through a link, also not one that was there
//   before.
// - Links are created as the archive says, wherever they point: nothing here follows them.
// - A hard link is made only to something below the folder.
// - What is in a member's way is replaced, unless one of the two is a directory (kConflict; a
// directory that
//   is there already is fine).
// - Modes are kept without setuid and setgid; a directory stays accessible to its owner. Times are
// kept,
//   except of directories. Owners are not.
// - FIFOs and devices are skipped and counted.
// Files complete before an error stay; the one being written is removed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/tar_reader.h"
#include "files/place.h"

namespace cay::files {

struct UnpackCounts {
  uint64_t files = 0;  // hard links too
  uint64_t dirs = 0;
  uint64_t symlinks = 0;
  uint64_t skipped = 0;
  uint64_t bytes = 0;
};

class TarUnpack : private TarSink {
 public:
  // Makes the folder if it is missing.
  static Result<std::unique_ptr<TarUnpack>> open(std::shared_ptr<const Place> place,
                                                 std::string_view path);
  TarUnpack(const TarUnpack&) = delete;
  TarUnpack& operator=(const TarUnpack&) = delete;
  ~TarUnpack() override;

  Result<> write(std::string_view bytes);
  // The archive is complete.
  Result<UnpackCounts> finish();

 private:
  enum class Missing { kFail, kMake };

  TarUnpack(std::shared_ptr<const Place> place, Fd top, std::string path)
      : place_(std::move(place)), top_(std::move(top)), path_(std::move(path)) {}

  Result<> member(const TarMember& member) override;
  Result<> data(std::string_view piece) override;
  Result<> memberEnd() override;

  Result<> makeDir(const TarMember& member, const Location& at);
  Result<> makeFile(const TarMember& member, Location at);
  Result<> makeSymlink(const TarMember& member, const Location& at);
  Result<> makeHardLink(const TarMember& member, const Location& at);
  // Where a name of the archive lies; its name is empty for the folder itself.
  Result<Location> locate(std::string_view name, Missing missing);
  Result<Fd> openDirectory(std::string_view relative, Missing missing);

  struct OpenFile {
    Location at;
    Fd file;
    std::string name;  // in the archive
    mode_t mode;
    timespec mtime;
  };

  std::shared_ptr<const Place> place_;
  Fd top_;
  std::string path_;  // of the folder
  std::optional<OpenFile> open_;
  // The directory of the last member: the next one is mostly in the same.
  std::string lastPath_;
  Fd last_;
  UnpackCounts counts_;
  TarReader reader_{*this};
};

}  // namespace cay::files
