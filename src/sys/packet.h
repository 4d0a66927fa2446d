// Whole messages over a Unix seqpacket socket, with at most one descriptor riding along.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

struct Packet {
  std::string data;  // empty: the other side has closed
  Fd fd;
};

// The largest message that is always sent in one piece with default socket buffers.
inline constexpr size_t kMaxPacketBytes = 64 * 1024;

// Never blocks: EAGAIN becomes kExhausted. `fd` < 0: none.
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
