// A blocking TCP client (or accepted peer) that sends and shows exact bytes. Every wait is bounded,
// so a test fails instead of hanging.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace cay::testing {

class RawClient {
 public:
  static constexpr int kWaitMs = 15'000;

  explicit RawClient(Fd fd) : fd_(std::move(fd)) {}
  static RawClient connect(uint16_t port, int receiveBuffer = 0) {
    Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.valid()) throw std::runtime_error("socket failed");
    if (receiveBuffer > 0) {
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receiveBuffer, sizeof receiveBuffer);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error(std::string("connect: ") + std::strerror(errno));
    }
    return RawClient(std::move(fd));
  }

  // False once the peer has gone.
  bool send(std::string_view data) {
    while (!data.empty()) {
      const ssize_t sent = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      data.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // What one recv call gives; "" at the end of the stream; nullopt on a reset or when nothing
  // comes.
  std::optional<std::string> receiveOnce(int waitMs = kWaitMs) {
    pollfd poll{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, waitMs) <= 0) return std::nullopt;
    std::array<char, size_t{256} * 1024> buffer;
    const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0) return std::nullopt;
    return std::string(buffer.data(), static_cast<size_t>(count));
  }

  // Everything up to and including `mark`; what follows is kept for the next call.
  std::string receiveUntil(std::string_view mark) {
    size_t searched = 0;
    for (;;) {
      const size_t found = pending_.find(mark, searched);
      if (found != std::string::npos) return take(found + mark.size());
      searched = pending_.size() < mark.size() ? 0 : pending_.size() - mark.size();
      const auto more = receiveOnce();
      if (!more || more->empty()) return take(pending_.size());
      pending_ += *more;
    }
  }
  std::string receiveExactly(size_t count) {
    while (pending_.size() < count) {
      const auto more = receiveOnce();
      if (!more || more->empty()) break;
      pending_ += *more;
    }
    return take(std::min(count, pending_.size()));
  }
  std::string receiveToEnd() {
    for (;;) {
      const auto more = receiveOnce();
      if (!more || more->empty()) {
        endedInOrder_ = more.has_value();
        return take(pending_.size());
      }
      pending_ += *more;
    }
  }
  // After receiveToEnd: the stream ended by a close, not by a reset or a time-out.
  [[nodiscard]] bool endedInOrder() const { return endedInOrder_; }

  // A head and the body its Content-Length announces.
  std::string receiveAnswer() {
    std::string answer = receiveUntil("\r\n\r\n");
    constexpr std::string_view kLength = "Content-Length: ";
    const size_t at = answer.find(kLength);
    if (at == std::string::npos) return answer;
    return answer + receiveExactly(std::stoul(answer.substr(at + kLength.size())));
  }
  std::string ask(std::string_view request) {
    send(request);
    return receiveAnswer();
  }

  // How many packets with data have come. On the loopback, with Nagle's delay off, that is the
  // number of sends of up to 64 KiB.
  [[nodiscard]] unsigned dataSegments() const {
    // tcpi_data_segs_in of the kernel's tcp_info, which the C library's own is too old to have.
    constexpr size_t kOffset = 152;
    std::array<char, kOffset + sizeof(uint32_t)> info{};
    socklen_t length = info.size();
    ::getsockopt(fd_.get(), IPPROTO_TCP, TCP_INFO, info.data(), &length);
    uint32_t count = 0;
    std::memcpy(&count, info.data() + kOffset, sizeof count);
    return count;
  }

  void shutDownSending() { ::shutdown(fd_.get(), SHUT_WR); }
  void reset() {
    const linger atOnce{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce);
    close();
  }
  void close() { fd_.reset(); }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  std::string take(size_t count) {
    std::string taken = pending_.substr(0, count);
    pending_.erase(0, count);
    return taken;
  }

  Fd fd_;
  std::string pending_;
  bool endedInOrder_ = false;
};

// A listening port on 127.0.0.1 whose connections a test plays by hand.
class RawListener {
 public:
  RawListener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
        ::listen(fd_.get(), 16) != 0 ||
        ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      throw std::runtime_error(std::string("listen: ") + std::strerror(errno));
    }
    port_ = ntohs(address.sin_port);
  }

  [[nodiscard]] uint16_t port() const { return port_; }
  // nullopt if nobody comes.
  std::optional<RawClient> accept(int waitMs = RawClient::kWaitMs) {
    pollfd poll{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, waitMs) <= 0) return std::nullopt;
    Fd peer(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!peer.valid()) return std::nullopt;
    return RawClient(std::move(peer));
  }

 private:
  Fd fd_;
  uint16_t port_ = 0;
};

}  // namespace cay::testing
