// The least that an HTTP server can do: one thread, epoll, and the same answer to whatever ends in
// an empty line. Its round trip is the part of every figure that belongs to the network.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <thread>

#include "base/fd.h"

namespace cay::bench {

class EchoServer {
 public:
  // Runs on core `cpu` alone, or anywhere for -1.
  explicit EchoServer(std::string answer, int cpu = -1);

  [[nodiscard]] uint16_t port() const { return port_; }

 private:
  void serve(const std::stop_token& stop);
  void watch(int fd);
  void acceptOne();
  void answerOne(int fd);

  std::string answer_;
  uint16_t port_ = 0;
  Fd listener_;
  Fd epoll_;
  std::map<int, Fd> connections_;
  std::jthread thread_;
};

}  // namespace cay::bench
