// From a request's body to a blocking consumer: while a worker writes one buffer, the next one
// fills from the network.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "net/handler.h"
#include "net/task.h"
#include "net/worker_pool.h"

namespace cay::host {

// Runs on a worker, one call at a time, in order. It must own what it uses.
using BlockingSink = std::function<Result<>(std::string_view)>;

class BodyPump {
 public:
  BodyPump(const net::RequestHead& head, net::Body& body, net::WorkerPool& workers);

  // Reads until the first buffer is full or the body has ended. Whoever wants small bodies in one
  // go looks at them after this; feed() gives those bytes too.
  net::Task<Result<>> begin();
  // The body is all in first().
  [[nodiscard]] bool ended() const { return ended_; }
  // Keeps its bytes alive, wherever it is copied to.
  [[nodiscard]] std::shared_ptr<const std::string_view> first() const;

  // Gives the whole body to `sink`.
  net::Task<Result<>> feed(BlockingSink sink);
  // Bytes received so far.
  [[nodiscard]] uint64_t received() const { return received_; }

 private:
  // Shared with the work that writes them, which may outlive the request.
  struct Buffer {
    std::unique_ptr<char[]> bytes;
    size_t capacity = 0;
    size_t size = 0;
  };

  net::Task<Result<>> fill(size_t index);

  net::Body& body_;
  net::WorkerPool& workers_;
  std::optional<uint64_t> announced_;
  std::array<std::shared_ptr<Buffer>, 2> buffers_;
  bool begun_ = false;
  bool ended_ = false;
  uint64_t received_ = 0;
};

}  // namespace cay::host
