// A cay-host of our own on a free loopback port, with a token and a fresh state folder. Ends with
// the object.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "testing/temp_dir.h"

namespace cay::bench {

class HostProcess {
 public:
  // `variables`: more of its environment, each as NAME=value. Returns once it listens.
  explicit HostProcess(std::string program, std::vector<std::string> variables = {});
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  // Ends it as an operator does (SIGTERM); it stays down.
  void stop();
  // Ends it as the kernel does (SIGKILL), and starts another one over the same state.
  void killAndRestart();

  [[nodiscard]] uint16_t port() const { return port_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string_view token() const { return "token-of-the-bench"; }
  // The keeper, which exists since the first command.
  [[nodiscard]] pid_t keeper() const;
  // A folder on the file system that holds the state too.
  [[nodiscard]] std::string folder() const { return files_.path().string(); }
  [[nodiscard]] std::string state() const { return files_.path() / "state"; }

  [[nodiscard]] std::string execRequest(std::string_view body) const;
  // Runs so many commands that the host has as many records as it keeps: from then on a new one
  // takes over the file of an old one.
  void fillRecords() const;

 private:
  void start();
  void end(int signal);
  void awaitListening(const Fd& pipe);

  const std::string program_;
  const std::vector<std::string> variables_;
  testing::TempDir files_;
  pid_t pid_ = 0;  // 0: stopped
  std::atomic<uint16_t> port_ = 0;
  // A full pipe would stop the host. A keeper that outlives its host holds the pipe open, so each
  // start has one of its own.
  std::vector<std::jthread> drains_;
};

}  // namespace cay::bench
