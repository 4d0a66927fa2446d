#include "sys/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/un.h>

#include <cerrno>

#include "sys/file.h"
#include "sys/io.h"

namespace cay::sys {
namespace {

template <typename Call>
ssize_t retried(Call call) {
  for (;;) {
    const ssize_t result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

Result<> setOption(int socket, int level, int option, int value) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0) {
    return failSys("setsockopt", errno);
  }
  return {};
}

Result<> setTcpOptions(int fd) {
  CAY_TRY(setOption(fd, IPPROTO_TCP, TCP_NODELAY, 1));
  CAY_TRY(setOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1));
  CAY_TRY(setOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60));
  CAY_TRY(setOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, 15));
  return setOption(fd, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

Result<int> socketOption(int fd, int name) {
  int value = 0;
  socklen_t length = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, name, &value, &length) != 0) return failSys("a socket", errno);
  return value;
}

}  // namespace

ssize_t receive(int socket, std::span<char> buffer) {
  return retried([&] { return ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT); });
}

ssize_t peek(int socket, std::span<char> buffer) {
  return retried(
      [&] { return ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT | MSG_PEEK); });
}

ssize_t send(int socket, std::span<const iovec> pieces, More more) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg only reads it
  message.msg_iovlen = pieces.size();
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (more == More::kYes ? MSG_MORE : 0);
  return retried([&] { return ::sendmsg(socket, &message, flags); });
}

ssize_t sendFile(int socket, int file, uint64_t offset, size_t count) {
  return retried([&] {
    auto position = static_cast<off_t>(offset);
    return ::sendfile(socket, file, &position, count);
  });
}

bool peerHasClosed(int socket) {
  pollfd poll{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Result<> takeListener(int listener) {
  CAY_ASSIGN(const int listens, socketOption(listener, SO_ACCEPTCONN));
  CAY_ASSIGN(const int type, socketOption(listener, SO_TYPE));
  CAY_ASSIGN(const int family, socketOption(listener, SO_DOMAIN));
  const bool tcp = family == AF_INET || family == AF_INET6;
  if (listens == 0 || type != SOCK_STREAM || (!tcp && family != AF_UNIX)) {
    return fail(Code::kInvalid, "not a TCP or Unix stream socket that listens");
  }
  CAY_TRY(setNonBlocking(listener));
  return tcp ? setTcpOptions(listener) : Result<>();
}

Result<Fd> listenTcp(const sockaddr* address, socklen_t length) {
  Fd listener(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid()) return failSys("socket", errno);
  const int fd = listener.get();
  CAY_TRY(setOption(fd, SOL_SOCKET, SO_REUSEADDR, 1));
  if (address->sa_family == AF_INET6) CAY_TRY(setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
  CAY_TRY(setTcpOptions(fd));
  if (::bind(fd, address, length) != 0) return failSys("bind", errno);
  if (::listen(fd, SOMAXCONN) != 0) return failSys("listen", errno);
  return listener;
}

int accept(int listener) {
  return static_cast<int>(
      retried([&] { return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); }));
}

Result<uint16_t> localPort(int socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return failSys("getsockname", errno);
  }
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  }
  return fail(Code::kInvalid, "not a TCP socket");
}

Result<Fd> connectUnix(int path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fdPath(path);
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failSys("socket", errno);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failSys("connect", errno);
  }
  return socket;
}

Result<std::pair<Fd, Fd>> streamPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return failSys("socketpair", errno);
  }
  return std::pair(Fd(ends[0]), Fd(ends[1]));
}

void resetOnClose(int socket) {
  const linger atOnce{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket, SOL_SOCKET, SO_LINGER, &atOnce, sizeof atOnce);
}

}  // namespace cay::sys
