#include "sys/packet.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cay::sys {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMaxPacketFds * sizeof(int));

Result<sockaddr_un> addressAt(int directory, std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + "/" + std::string(name);
  if (path.size() >= sizeof address.sun_path) return failSys("socket name " + path, ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> packetSocket() {
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return failSys("socket", errno);
  return socket;
}

}  // namespace

Result<> sendPacket(int socket, std::string_view data, std::span<const int> fds) {
  if (fds.size() > kMaxPacketFds) return failSys("sendmsg", EINVAL);
  iovec part{const_cast<char*>(data.data()), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[kControlBytes] = {};
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return failSys("sendmsg", errno);
  return {};
}

Result<> sendPacket(int socket, std::string_view data, int fd) {
  return sendPacket(socket, data, std::span<const int>(&fd, fd >= 0 ? 1 : 0));
}

Result<Packet> receivePacket(int socket) {
  static thread_local char buffer[kMaxPacketBytes + 4096];
  iovec part{buffer, sizeof buffer};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return failSys("recvmsg", errno);
  Packet packet;
  packet.data.assign(buffer, static_cast<size_t>(got));
  // All descriptors of a message come under one header.
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message);
      header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(header) + at, sizeof fd);
      packet.fds.emplace_back(fd);
    }
  }
  if ((message.msg_flags & MSG_TRUNC) != 0) return failSys("recvmsg", EMSGSIZE);
  return packet;
}

Result<Fd> listenAt(int directory, std::string_view name) {
  CAY_ASSIGN(const sockaddr_un address, addressAt(directory, name));
  CAY_ASSIGN(Fd socket, packetSocket());
  (void)::fchmod(socket.get(), 0600);  // before it has a name: the file gets this mode
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failSys("bind " + std::string(name), errno);
  }
  if (::listen(socket.get(), 8) != 0) return failSys("listen " + std::string(name), errno);
  return socket;
}

Result<Fd> connectAt(int directory, std::string_view name) {
  CAY_ASSIGN(const sockaddr_un address, addressAt(directory, name));
  CAY_ASSIGN(Fd socket, packetSocket());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failSys("connect " + std::string(name), errno);
  }
  return socket;
}

Result<SocketPair> packetPair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) {
    return failSys("socketpair", errno);
  }
  return SocketPair{Fd(ends[0]), Fd(ends[1])};
}

}  // namespace cay::sys
