// When a parallel upload of ranges should cut a file: pure bookkeeping, with the time passed in.
//
// Clients of protocol 1 write a big file as ranges in any order and never say how long it is to be,
// so a file that was longer would keep its old tail. The rule here guesses the end of such a burst:
//
// - The ranges written to a file are collected. When one has been written, no other is being
// written and
//   together they tile [0, end) without a hole, the file is shrunk (never grown) to `end` before
//   the answer. So a lone range at 0 truncates like a whole write, and a lone range elsewhere never
//   does.
// - A range that begins after that inside of [0, end) belongs to the next upload, since no client
//   sends a range twice: the old ones are forgotten. Behind `end` it may be the rest of this one,
//   so they stay. They are forgotten in any case kExpiryMs after the last one.
// - When the ranges tile, the last one waits up to kLingerMs for another to begin: a fast server
// would
//   otherwise see each pause in the middle of an upload as its end.
// - A file that has seen an explicit final size (truncate_to) is exempt: its client says what it
// wants.
// - A range that was given up, or too many pieces, means no cutting until the ranges have expired.
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

namespace cay::files {

// A file, whatever path leads to it. The birth time tells a reused inode number apart.
struct FileKey {
  dev_t device = 0;
  ino_t inode = 0;
  int64_t bornNs = 0;
  auto operator<=>(const FileKey&) const = default;
};

class OffsetBursts {
 public:
  static constexpr int64_t kExpiryMs = 1000;
  static constexpr int64_t kLingerMs = 50;
  static constexpr size_t kMaxFiles = 1024;
  static constexpr size_t kMaxPieces = 4096;  // disjoint ranges of one file

  // A range of `file` from `offset` on is going to be written; exactly one of finish() and
  // abandon() must follow.
  void begin(const FileKey& file, uint64_t offset, int64_t nowMs);
  // The file has seen truncate_to.
  void exempt(const FileKey& file);

  // [from, to) has been written. Call finish() once shouldLinger() is false or kLingerMs have
  // passed.
  void wrote(const FileKey& file, uint64_t from, uint64_t to);
  // True while the ranges tile and nobody else is writing: then it may pay to wait for the next
  // range.
  [[nodiscard]] bool shouldLinger(const FileKey& file) const;
  // The size to shrink the file to, if this was the end of a burst.
  std::optional<uint64_t> finish(const FileKey& file, int64_t nowMs);
  void abandon(const FileKey& file, int64_t nowMs);

  [[nodiscard]] size_t files() const { return bursts_.size(); }

 private:
  struct Burst {
    size_t writing = 0;
    int64_t lastMs = 0;
    bool exempt = false;
    bool spoiled = false;
    std::map<uint64_t, uint64_t> pieces;  // disjoint and not adjacent: begin to end

    [[nodiscard]] std::optional<uint64_t> tiledTo() const;
    void forget();
    void add(uint64_t from, uint64_t to);
  };

  void makeRoom(int64_t nowMs);

  std::map<FileKey, Burst> bursts_;
};

}  // namespace cay::files
