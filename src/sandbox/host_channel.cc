#include "sandbox/host_channel.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>

namespace cay::sandbox {

uint32_t HostChannel::events() const {
  return writable_ ? uint32_t{EPOLLIN} : uint32_t{EPOLLIN} | uint32_t{EPOLLOUT};
}

bool HostChannel::accept() {
  Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!connection.valid()) return false;
  drop();
  host_ = std::move(connection);
  return true;
}

void HostChannel::drop() {
  host_.reset();
  outbox_.clear();
  writable_ = true;
}

bool HostChannel::send(const Writer& message, int fd) {
  if (!host_.valid()) return true;
  if (outbox_.empty() && writable_) {
    const auto sent = sys::sendPacket(host_.get(), message.bytes(), fd);
    if (sent) return true;
    if (sent.error().sys != EAGAIN) return false;
    writable_ = false;
  }
  outbox_.emplace_back(message.bytes(), fd >= 0 ? Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)) : Fd());
  return true;
}

bool HostChannel::flush() {
  while (host_.valid() && writable_ && !outbox_.empty()) {
    const auto sent =
        sys::sendPacket(host_.get(), outbox_.front().first, outbox_.front().second.get());
    if (!sent && sent.error().sys == EAGAIN) {
      writable_ = false;
      return true;
    }
    if (!sent) return false;
    outbox_.pop_front();
  }
  return true;
}

Result<sys::Packet> HostChannel::receive() {
  auto packet = sys::receivePacket(host_.get());
  if (!packet && packet.error().sys == EAGAIN) return sys::Packet{};
  if (packet && packet->data.empty()) return fail(Code::kClosed, "the host is gone");
  return packet;
}

}  // namespace cay::sandbox
