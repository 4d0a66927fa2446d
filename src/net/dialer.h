// Where the inside of a sandbox is reached: something that connects to one of its TCP ports.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "net/stream.h"
#include "net/task.h"

namespace cay::net {

class Dialer {
 public:
  virtual ~Dialer() = default;
  // kUnreachable, with a message for the client, if nothing listens there.
  virtual Task<Result<Stream>> dial(uint16_t port) = 0;
};

// For a sandbox that shares our own network.
class LoopbackDialer final : public Dialer {
 public:
  Task<Result<Stream>> dial(uint16_t port) override { return dialLoopback(port); }
};

}  // namespace cay::net
