#include "net/peer.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace cay::net {
namespace {

namespace ip = boost::asio::ip;

ip::address addressOf(const sockaddr_storage& from) {
  if (from.ss_family == AF_INET) {
    return ip::address_v4(ntohl(reinterpret_cast<const sockaddr_in*>(&from)->sin_addr.s_addr));
  }
  const auto& raw = reinterpret_cast<const sockaddr_in6*>(&from)->sin6_addr.s6_addr;
  ip::address_v6::bytes_type bytes;
  std::ranges::copy(raw, bytes.begin());
  const ip::address_v6 address(bytes);
  // The same machine by either name.
  if (address.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address);
  return address;
}

}  // namespace

Peer peerOf(int socket) {
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&from), &length) != 0) return {};
  if (from.ss_family != AF_INET && from.ss_family != AF_INET6) return {};
  const ip::address address = addressOf(from);
  return {.address = address.to_string(), .loopback = address.is_loopback(), .tls = false};
}

}  // namespace cay::net
