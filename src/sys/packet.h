// Whole messages over a Unix seqpacket socket, with a few descriptors riding along.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

inline constexpr size_t kMaxPacketFds = 4;

struct Packet {
  std::string data;     // empty: the other side has closed
  std::vector<Fd> fds;  // fewer than were sent, if there is no room for more in this process

  // That one; not valid if it did not come.
  Fd take(size_t number = 0) { return number < fds.size() ? std::move(fds[number]) : Fd(); }
};

// The largest message that is always sent in one piece with default socket buffers.
inline constexpr size_t kMaxPacketBytes = 64 * 1024;

// Never blocks: EAGAIN becomes kExhausted. At most kMaxPacketFds descriptors.
Result<> sendPacket(int socket, std::string_view data, std::span<const int> fds);
// `fd` < 0: none.
Result<> sendPacket(int socket, std::string_view data, int fd = -1);
// Never blocks: nullopt-like kExhausted (errno EAGAIN) when there is no message now.
Result<Packet> receivePacket(int socket);

// A listening seqpacket socket at `name` inside the directory, and a connection to one. Goes
// through /proc/self/fd, since a socket path longer than 107 bytes cannot be written in a sockaddr.
Result<Fd> listenAt(int directory, std::string_view name);
Result<Fd> connectAt(int directory, std::string_view name);

struct SocketPair {
  Fd first;
  Fd second;
};
Result<SocketPair> packetPair();

}  // namespace cay::sys
