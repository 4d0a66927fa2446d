// A cay-host of our own on a free loopback port, with a token and a fresh state folder. Ends with
// the object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "testing/temp_dir.h"

namespace cay::bench {

class HostProcess {
 public:
  // Returns once it listens.
  explicit HostProcess(const std::string& program);
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string_view token() const { return "token-of-the-bench"; }
  // The keeper, which exists since the first command.
  [[nodiscard]] pid_t keeper() const;
  // A folder on the file system that holds the state too.
  [[nodiscard]] std::string folder() const { return files_.path().string(); }

  [[nodiscard]] std::string execRequest(std::string_view body) const;
  // Runs so many commands that the host has as many records as it keeps: from then on a new one
  // takes over the file of an old one.
  void fillRecords() const;

 private:
  void awaitListening();

  testing::TempDir files_;
  pid_t pid_ = 0;
  uint16_t port_ = 0;
  Fd log_;
  std::jthread drain_;  // a full pipe would stop the host
};

}  // namespace cay::bench
