// Links, addresses and routes of a network namespace, by rtnetlink.
//
// A Netlink is bound to the namespace in which it was opened, wherever the process goes afterwards.
// Every call waits for the kernel's answer, which comes at once, unless it says otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::sys {

class NetlinkMessage;

// An IPv4 address as a number: 127.0.0.1 is 0x7f000001.
struct Ipv4 {
  uint32_t number = 0;

  [[nodiscard]] std::string text() const;
  bool operator==(const Ipv4&) const = default;
};
// Nothing but four decimal numbers: kInvalid for everything else.
Result<Ipv4> parseIpv4(std::string_view text);

struct LinkTraffic {
  uint64_t receivedBytes = 0;
  uint64_t sentBytes = 0;
};

class Netlink {
 public:
  // In the caller's namespace.
  static Result<Netlink> open();

  // A pair of links, `name` here and `peer` in the other namespace; both are down.
  Result<> makeVeth(const std::string& name, const std::string& peer, const Fd& peerSpace);
  Result<> makeBridge(const std::string& name);
  // Its peer, addresses and routes go with it. kNotFound if there is none.
  Result<> removeLink(const std::string& name);

  Result<> setUp(const std::string& name);
  // Waits until packets sent over it get anywhere: the kernel sees to that in its own time after a
  // link and what is behind it are up, and drops them until then. kUnreachable if that takes long.
  Result<> awaitCarrying(const std::string& name);
  // Makes a link a port of a bridge.
  Result<> setMaster(const std::string& name, const std::string& bridge);
  Result<> addAddress(const std::string& name, Ipv4 address, uint8_t prefix);
  Result<> addDefaultRoute(Ipv4 via);

  // As this end of the link sees it.
  Result<LinkTraffic> traffic(const std::string& name);
  // The names of all links.
  Result<std::vector<std::string>> links();
  // All IPv4 addresses of this namespace itself.
  Result<std::vector<Ipv4>> addresses();
  // The names of the links that a default route leads over, each once.
  Result<std::vector<std::string>> defaultRouteLinks();

 private:
  explicit Netlink(Fd socket) : socket_(std::move(socket)) {}
  // Sends and waits for the acknowledgement.
  Result<> request(NetlinkMessage& message, std::string_view what);
  // Calls `each` with every answer of a dump or query: its type, and what follows the header.
  template <typename Each>
  Result<> query(NetlinkMessage& message, std::string_view what, Each each);
  Result<int> indexOf(const std::string& name);

  Fd socket_;
  uint32_t sequence_ = 0;
};

}  // namespace cay::sys
