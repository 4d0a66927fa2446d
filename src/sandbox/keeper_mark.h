// Which process a keeper is, beyond doubt and without holding a descriptor: its number, and when it
// was born, since numbers are given out again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "net/task.h"

namespace cay::sandbox {

class KeeperMark {
 public:
  // The process that a pidfd stands for, seen from our own pid namespace.
  static Result<KeeperMark> of(const Fd& pidfd);

  // In a file, of this boot of the machine. kNotFound if there is none, or if it cannot be read.
  [[nodiscard]] Result<> save(int directory, const std::string& path) const;
  static Result<KeeperMark> load(int directory, const std::string& path);

  // Completes when it has ended; for the first process of a pid namespace: when all in it have.
  [[nodiscard]] net::Task<> ended() const;
  // Kills it first.
  [[nodiscard]] net::Task<> kill() const;

  bool operator==(const KeeperMark&) const = default;

 private:
  KeeperMark(pid_t pid, uint64_t born) : pid_(pid), born_(born) {}
  // kNotFound if it is gone.
  [[nodiscard]] Result<Fd> open() const;
  [[nodiscard]] net::Task<> awaitEnd(int signalFirst) const;

  pid_t pid_;
  uint64_t born_;  // in clock ticks since the machine started
};

}  // namespace cay::sandbox
