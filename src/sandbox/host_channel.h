// The keeper's end of its connection to the host: one host at a time, messages in order, nothing
// that waits.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "sandbox/wire.h"
#include "sys/packet.h"

namespace cay::sandbox {

class HostChannel {
 public:
  explicit HostChannel(Fd listener) : listener_(std::move(listener)) {}

  [[nodiscard]] int listener() const { return listener_.get(); }
  [[nodiscard]] int connection() const { return host_.get(); }
  [[nodiscard]] bool connected() const { return host_.valid(); }
  // What epoll is to watch the connection for.
  [[nodiscard]] uint32_t events() const;
  // Everything said has been sent.
  [[nodiscard]] bool settled() const { return outbox_.empty(); }

  // True if a new host has come. The one before it can only be the end of a host that has died.
  bool accept();
  void drop();
  void setWritable() { writable_ = true; }

  // Both false if the host is lost.
  bool send(const Writer& message, int fd = -1);
  bool flush();
  // The next message, with empty data when there is none now; an error when the host is gone.
  Result<sys::Packet> receive();

 private:
  Fd listener_;
  Fd host_;
  std::deque<std::pair<std::string, Fd>> outbox_;
  bool writable_ = true;
};

}  // namespace cay::sandbox
