// Packing a directory into a tar stream that is made while it is read. Blocking; one thread at a
// time.
//
// Members are regular files, directories and links, named relative to the folder, sorted, a
// directory before what is in it; FIFOs, sockets and devices are left out, and so is what vanishes
// meanwhile. A file with several hard links is packed for each of its names. Names beyond 100 bytes
// and sizes beyond 8 GiB go into pax headers; names that are not UTF-8 keep their bytes. Links are
// packed, never followed. A file that turns out shorter than its header said is an error: the
// stream must be cut, not patched up.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "files/place.h"

namespace cay::files {

class TarPack {
 public:
  // The folder, followed through links inside the root; kConflict if it is none.
  static Result<std::unique_ptr<TarPack>> open(std::shared_ptr<const Place> place,
                                               std::string_view path);

  // Fills `buffer` with the next bytes; less than all of it only at the end, nothing after it.
  Result<size_t> read(std::span<char> buffer);

 private:
  // A directory on the way down, with what is still to be packed of it.
  struct Level {
    std::string path;  // relative to the folder, "" for itself
    Fd dir;
    std::vector<std::string> names;  // in reverse, so that the next one is at the back
  };

  TarPack(std::shared_ptr<const Place> place, std::string path)
      : place_(std::move(place)), path_(std::move(path)) {}

  Result<> advance();
  Result<> packEntry(const std::string& name);
  Result<> descend(Fd dir, std::string relative);
  Result<size_t> readFile(std::span<char> buffer);

  std::shared_ptr<const Place> place_;
  std::string path_;
  std::vector<Level> levels_;
  std::string pending_;  // headers and padding to be given out next
  size_t pendingAt_ = 0;
  Fd file_;  // the file being packed
  std::string filePath_;
  uint64_t fileLeft_ = 0;
  uint64_t fileSize_ = 0;
  bool ended_ = false;
};

}  // namespace cay::files
