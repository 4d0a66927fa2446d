// A cay-host of our own that serves a pool. Leaves nothing behind: at its end all sandboxes are
// deleted.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "host_process.h"
#include "testing/temp_dir.h"

namespace cay::bench {

class PoolHost {
 public:
  // `walls` is full or restricted, as CAY_WALLS has it.
  PoolHost(const std::string& program, std::string_view walls);
  ~PoolHost();
  PoolHost(const PoolHost&) = delete;
  PoolHost& operator=(const PoolHost&) = delete;

  [[nodiscard]] HostProcess& process() { return process_; }
  [[nodiscard]] const HostProcess& process() const { return process_; }
  // The executable of the host, its nursery and its keepers, and of nobody else.
  [[nodiscard]] const std::string& program() const { return program_; }

  // How many deleted sandboxes are still on the disk.
  [[nodiscard]] size_t waiting() const;
  // Deletes all sandboxes, and waits as settle() does.
  void empty() const;
  // Waits until what was deleted is off the disk. Throws std::runtime_error if that gets nowhere.
  void settle() const;
  // Deletes all sandboxes, and waits until those that only stood ready are gone too, a minute
  // later.
  void rest() const;

 private:
  testing::TempDir folder_;
  const std::string program_;
  HostProcess process_;
};

}  // namespace cay::bench
