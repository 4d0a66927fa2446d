#include "net/wire.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "net/await.h"
#include "net/event.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr Millis kAskAgain{500};
constexpr size_t kLingerBytes = size_t{256} * 1024;
constexpr Millis kLingerTime{1000};

int negativeErrno(const error_code& error) {
  return error.category() == boost::system::system_category() && error.value() != 0 ? -error.value()
                                                                                    : -EIO;
}

// Marks a member true for as long as it lives, also when a cancelled task unwinds.
class Flagged {
 public:
  explicit Flagged(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flagged() { flag_ = false; }
  Flagged(const Flagged&) = delete;
  Flagged& operator=(const Flagged&) = delete;

 private:
  bool& flag_;
};

}  // namespace

Pieces::Pieces(std::initializer_list<std::string_view> pieces) {
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;
    items_[last_++] = {const_cast<char*>(piece.data()), piece.size()};  // only read
  }
}

void Pieces::advance(size_t count) {
  while (first_ < last_ && count >= items_[first_].iov_len) count -= items_[first_++].iov_len;
  if (first_ == last_) return;
  items_[first_].iov_base = static_cast<char*>(items_[first_].iov_base) + count;
  items_[first_].iov_len -= count;
}

Task<ssize_t> Wire::receive(std::span<char> into) {
  const Flagged flagged(receiving_);
  const auto [error, count] =
      co_await socket_.async_receive(asio::buffer(into.data(), into.size()), kAwait);
  if (!error) co_return static_cast<ssize_t>(count);
  if (error != asio::error::eof) co_return negativeErrno(error);
  co_return cut_ && *cut_ ? -ECONNRESET : 0;
}

Task<ssize_t> Wire::fill(size_t want) {
  const ssize_t count = co_await receive(input_.prepare(want));
  if (count > 0) input_.commit(static_cast<size_t>(count));
  co_return count;
}

bool Wire::burstEnds(size_t sent) {
  sentInBurst_ += sent;
  if (sentInBurst_ < kSendBurst) return false;
  sentInBurst_ = 0;
  return true;
}

Task<> Wire::yield() {
  co_await asio::post(asio::use_awaitable_t<Executor>());
}

Task<int> Wire::writable() {
  const auto [error] = co_await socket_.async_wait(Socket::wait_write, kAwait);
  sentInBurst_ = 0;
  co_return error ? negativeErrno(error) : 0;
}

Task<int> Wire::send(Pieces pieces, sys::More more, const StallLimit* stall) {
  while (!pieces.empty()) {
    const ssize_t count = sys::send(socket_.native_handle(), pieces.rest(), more);
    if (count >= 0) {
      pieces.advance(static_cast<size_t>(count));
      if (burstEnds(static_cast<size_t>(count))) co_await yield();
    } else if (count == -EAGAIN) {
      if (stall != nullptr) stall->deadline.arm(stall->limit);
      const int waited = co_await writable();
      if (stall != nullptr) stall->deadline.disarm();
      if (waited != 0) co_return waited;
    } else {
      co_return static_cast<int>(count);
    }
  }
  co_return 0;
}

Task<> Wire::untilPeerGone() {
  for (;;) {
    if (input_.size() >= kMaxAhead) {
      if (sys::peerHasClosed(socket_.native_handle())) co_return;
      co_await sleepFor(kAskAgain);
      continue;
    }
    const auto [error] = co_await socket_.async_wait(Socket::wait_read, kAwait);
    if (error) co_return;
    ssize_t count;
    if (receiving_) {
      // The receiver takes the bytes; taking them here would leave it waiting for them.
      char byte;
      count = sys::peek(socket_.native_handle(), {&byte, 1});
    } else {
      count = sys::receive(socket_.native_handle(), input_.prepare(kFillBytes));
      if (count > 0) input_.commit(static_cast<size_t>(count));
    }
    if (count == 0 || (count < 0 && count != -EAGAIN)) co_return;
  }
}

Task<> Wire::lingeringClose(Deadline& deadline) {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  deadline.arm(kLingerTime);
  size_t discarded = input_.size();
  input_.consume(input_.size());
  while (discarded < kLingerBytes && !deadline.expired()) {
    const ssize_t count = co_await receive(input_.prepare(kFillBytes));
    if (count <= 0) break;
    discarded += static_cast<size_t>(count);
  }
  socket_.close(ignored);
}

void Wire::resetOnClose() {
  if (cut_) *cut_ = true;
  sys::resetOnClose(socket_.native_handle());
}

Stream Wire::release() {
  Stream stream{std::move(socket_), std::string(input_.view()), std::move(cut_)};
  input_.consume(input_.size());
  return stream;
}

}  // namespace cay::net
