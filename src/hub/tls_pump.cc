#include "hub/tls_pump.h"

#include <sys/uio.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <utility>

#include "net/await.h"
#include "sys/socket.h"

namespace cay::hub {
namespace {

using net::kAwait;
using net::Socket;
using State = TlsSession::State;
using boost::system::error_code;

// A record of TLS. What waits on the way is a few of these for each direction.
constexpr size_t kPiece = size_t{16} * 1024;
// Beyond what one piece can have become: answers to a client that asks and does not listen.
constexpr size_t kMostOutput = size_t{64} * 1024;
constexpr size_t kBurst = size_t{1024} * 1024;
constexpr size_t kMostDrained = size_t{256} * 1024;
constexpr Millis kLinger{1000};
constexpr Millis kLook{1000};
constexpr int kMostLooksWithoutProgress = 60;

ssize_t sendSome(Socket& socket, std::string_view bytes) {
  const iovec piece{const_cast<char*>(bytes.data()), bytes.size()};  // only read
  return sys::send(socket.native_handle(), {&piece, 1}, sys::More::kNo);
}

// 0 once the socket is ready, or -errno.
net::Task<int> ready(Socket& socket, Socket::wait_type what) {
  const auto [error] = co_await socket.async_wait(what, kAwait);
  co_return error ? -ECANCELED : 0;
}

}  // namespace

TlsPump::TlsPump(std::unique_ptr<TlsSession> session, net::Stream network)
    : session_(std::move(session)),
      network_(std::move(network.socket)),
      networkCut_(std::move(network.cut)),
      plain_(network_.get_executor()) {
  session_->feed(network.buffered);
}

net::Task<TlsPump::Shaken> TlsPump::shakeHands() {
  for (;;) {
    const State state = session_->handshake();
    if (!co_await flush()) co_return Shaken::kLeft;
    if (state == State::kReady) co_return Shaken::kDone;
    if (state != State::kHungry) co_return Shaken::kBroken;
    if (co_await feed() <= 0) co_return Shaken::kLeft;
  }
}

net::Task<> TlsPump::run(net::Stream plain) {
  using namespace boost::asio::experimental::awaitable_operators;
  plain_ = std::move(plain.socket);
  plainCut_ = std::move(plain.cut);
  co_await ((inward() && outward()) || untilPointless());
}

net::Task<> TlsPump::inward() {
  for (;;) {
    const State state = co_await deliver();
    if (nobodyIn_) co_return co_await drain();
    if (state == State::kEnded) break;
    const ssize_t fed = state == State::kHungry ? co_await feed() : -EIO;
    if (fed == -ECANCELED) co_return;
    // An end that TLS has not announced may be the work of anybody on the way.
    if (fed <= 0) co_return cut();
  }
  error_code ignored;
  plain_.shutdown(Socket::shutdown_send, ignored);
}

net::Task<> TlsPump::outward() {
  for (;;) {
    const ssize_t count = encryptOnce();
    if (count == -EAGAIN) {
      if (co_await ready(plain_, Socket::wait_read) != 0) co_return;
      continue;
    }
    if (count < 0 || (count == 0 && *plainCut_)) co_return cut();
    if (count == 0) session_->close();
    if (!co_await flush()) co_return cut();
    if (count == 0) break;
    co_await rest(static_cast<size_t>(count));
  }
  error_code ignored;
  network_.shutdown(Socket::shutdown_send, ignored);
  outEnded_ = true;
}

net::Task<> TlsPump::untilPointless() {
  if (co_await ready(plain_, Socket::wait_error) != 0) co_return;
  // What was said last still goes out, for as long as somebody takes it.
  for (int looks = 0; !outEnded_; ++looks) {
    const uint64_t before = sentBytes_;
    co_await net::sleepFor(kLook);
    if (sentBytes_ != before) looks = 0;
    if (looks >= kMostLooksWithoutProgress) co_return cut();
  }
  co_await net::sleepFor(kLinger);
}

net::Task<ssize_t> TlsPump::feed() {
  for (;;) {
    const ssize_t count = feedOnce();
    if (count != -EAGAIN) co_return count;
    if (co_await ready(network_, Socket::wait_read) != 0) co_return -ECANCELED;
  }
}

net::Task<bool> TlsPump::flush() {
  while (flushing_) co_await flushed_.wait();
  flushing_ = true;
  bool works = true;
  while (works && !session_->output().empty()) {
    const ssize_t count = sendSome(network_, session_->output());
    if (count >= 0) {
      session_->consumeOutput(static_cast<size_t>(count));
      sentBytes_ += static_cast<uint64_t>(count);
    } else {
      works = count == -EAGAIN && co_await ready(network_, Socket::wait_write) == 0;
    }
  }
  flushing_ = false;
  flushed_.notifyAll();
  co_return works;
}

net::Task<State> TlsPump::deliver() {
  for (;;) {
    const State state = deliverOnce();
    if (!held_.empty()) co_await deliverHeld();
    const size_t output = session_->output().size();
    if (outEnded_) {
      session_->consumeOutput(output);
    } else if (output > 0 && (!flushing_ || output > kMostOutput) && !co_await flush()) {
      co_return State::kBroken;
    }
    if (state != State::kReady || nobodyIn_) co_return state;
    co_await rest(kPiece);
  }
}

net::Task<> TlsPump::deliverHeld() {
  size_t taken = 0;
  while (taken < held_.size() && !nobodyIn_) {
    if (co_await ready(plain_, Socket::wait_write) != 0) {
      nobodyIn_ = true;
      break;
    }
    const ssize_t count = sendSome(plain_, std::string_view(held_).substr(taken));
    if (count >= 0) taken += static_cast<size_t>(count);
    nobodyIn_ = count < 0 && count != -EAGAIN;
  }
  held_ = {};
}

net::Task<> TlsPump::drain() {
  for (size_t drained = 0; drained < kMostDrained;) {
    std::array<char, 1024> unwanted;
    const ssize_t count = sys::receive(network_.native_handle(), unwanted);
    if (count > 0) drained += static_cast<size_t>(count);
    if (count == -EAGAIN && co_await ready(network_, Socket::wait_read) == 0) continue;
    if (count <= 0) co_return;
  }
}

net::Task<> TlsPump::rest(size_t moved) {
  burst_ += moved;
  if (burst_ < kBurst) co_return;
  burst_ = 0;
  co_await boost::asio::post(boost::asio::use_awaitable_t<net::Executor>());
}

ssize_t TlsPump::feedOnce() {
  std::array<char, kPiece> piece;
  const ssize_t count = sys::receive(network_.native_handle(), piece);
  if (count > 0) session_->feed({piece.data(), static_cast<size_t>(count)});
  return count;
}

State TlsPump::deliverOnce() {
  std::array<char, kPiece> piece;
  const auto [state, size] = session_->read(piece);
  if (size == 0) return state;
  const std::string_view bytes(piece.data(), size);
  const ssize_t count = sendSome(plain_, bytes);
  nobodyIn_ = count < 0 && count != -EAGAIN;
  if (!nobodyIn_) held_ = bytes.substr(count < 0 ? 0 : static_cast<size_t>(count));
  return state;
}

ssize_t TlsPump::encryptOnce() {
  std::array<char, kPiece> piece;
  const ssize_t count = sys::receive(plain_.native_handle(), piece);
  if (count <= 0) return count;
  return session_->write({piece.data(), static_cast<size_t>(count)}) ? count : -EIO;
}

void TlsPump::cut() {
  if (networkCut_) *networkCut_ = true;
  *plainCut_ = true;
  sys::resetOnClose(network_.native_handle());
  error_code ignored;
  network_.close(ignored);
  plain_.close(ignored);
}

}  // namespace cay::hub
