// A connected socket with its input buffer: the byte level under the HTTP server and client.
//
// Counts are bytes, or -errno; -ECANCELED when a deadline or a cancelled task ended the wait. One
// task may receive while another sends.
#pragma once

#include <sys/uio.h>

#include <array>
#include <span>
#include <string_view>

#include "net/deadline.h"
#include "net/input_buffer.h"
#include "net/stream.h"
#include "net/task.h"
#include "sys/socket.h"

namespace cay::net {

// Up to four pieces of memory that leave in one system call; they must outlive the sending.
class Pieces {
 public:
  Pieces(std::initializer_list<std::string_view> pieces);

  [[nodiscard]] std::span<const iovec> rest() const {
    return {items_.data() + first_, last_ - first_};
  }
  [[nodiscard]] bool empty() const { return first_ == last_; }
  void advance(size_t count);

 private:
  std::array<iovec, 4> items_;
  size_t first_ = 0;
  size_t last_ = 0;
};

// How long a send may make no progress.
struct StallLimit {
  Deadline& deadline;
  Millis limit;
};

class Wire {
 public:
  explicit Wire(Stream stream)
      : socket_(std::move(stream.socket)), input_(stream.buffered), cut_(std::move(stream.cut)) {}

  [[nodiscard]] Socket& socket() { return socket_; }
  [[nodiscard]] InputBuffer& input() { return input_; }
  [[nodiscard]] bool receiving() const { return receiving_; }

  // Waits for bytes; 0 is the end of the stream, -ECONNRESET that of one that was cut. Only while
  // the input buffer is empty.
  Task<ssize_t> receive(std::span<char> into);
  // The same into the input buffer, `want` bytes if there are as many.
  Task<ssize_t> fill(size_t want = kFillBytes);

  // Sends everything; 0 or -errno.
  Task<int> send(Pieces pieces, sys::More more = sys::More::kNo, const StallLimit* stall = nullptr);
  // Waits until the socket takes bytes again; 0 or -errno.
  Task<int> writable();

  // Counts sent bytes. True when a sender whose socket takes everything should let others run.
  bool burstEnds(size_t sent);
  // Lets others run.
  Task<> yield();

  // Completes when the peer has closed or reset the connection. Meanwhile bytes that arrive go into
  // the input buffer, unless somebody receives; past kMaxAhead bytes they stay in the kernel and
  // the state of the connection is asked for twice a second.
  Task<> untilPeerGone();

  // Ends our side, then throws away what still comes, within limits: closing at once would reset
  // the connection and could destroy the answer before the client has read it.
  Task<> lingeringClose(Deadline& deadline);

  // Makes the end of the socket show as a reset.
  void resetOnClose();

  // Hands the socket over with what has been received; the wire is then empty.
  Stream release();

 private:
  static constexpr size_t kFillBytes = 1024;
  static constexpr size_t kMaxAhead = size_t{64} * 1024;
  static constexpr size_t kSendBurst = size_t{1024} * 1024;

  Socket socket_;
  InputBuffer input_;
  Cut cut_;
  bool receiving_ = false;
  size_t sentInBurst_ = 0;
};

}  // namespace cay::net
