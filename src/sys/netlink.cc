#include "sys/netlink.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "sys/netlink_message.h"

namespace cay::sys {
namespace {

constexpr uint8_t kOperational = 6;  // IF_OPER_UP of <linux/if.h>, which <net/if.h> cannot stand
constexpr Millis kCarryingPatience{5'000};
constexpr Millis kCarryingStep{1};

constexpr size_t kAnswerBytes = size_t{64} * 1024;

std::string_view textOf(std::string_view name) {
  return name.substr(0, name.find('\0'));
}

template <typename Value>
std::optional<Value> valueOf(std::string_view bytes) {
  if (bytes.size() < sizeof(Value)) return std::nullopt;
  Value value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

ifinfomsg anyLink(int index = 0) {
  ifinfomsg body{};
  body.ifi_family = AF_UNSPEC;
  body.ifi_index = index;
  return body;
}

}  // namespace

std::string Ipv4::text() const {
  const in_addr address{.s_addr = htonl(number)};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &address, text, sizeof text);
  return text;
}

Result<Ipv4> parseIpv4(std::string_view text) {
  in_addr address{};
  const bool whole = !text.contains('\0');
  if (!whole || ::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) {
    return fail(Code::kInvalid, quoted(text) + " is not an IPv4 address");
  }
  return Ipv4{ntohl(address.s_addr)};
}

Result<Netlink> Netlink::open() {
  Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) return failSys("netlink socket", errno);
  return Netlink(std::move(socket));
}

template <typename Each>
Result<> Netlink::query(NetlinkMessage& message, std::string_view what, Each each) {
  const std::string& bytes = message.finish(++sequence_);
  if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0) return failSys(what, errno);
  // Not on the stack: a keeper's or a coroutine's may be small.
  std::string buffer(kAnswerBytes, '\0');
  while (true) {
    ssize_t got = 0;
    do {
      got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return failSys(what, errno);
    std::string_view rest(buffer.data(), static_cast<size_t>(got));
    while (const auto header = valueOf<nlmsghdr>(rest)) {
      if (header->nlmsg_len < sizeof(nlmsghdr) || header->nlmsg_len > rest.size()) break;
      const std::string_view payload =
          rest.substr(sizeof(nlmsghdr), header->nlmsg_len - sizeof(nlmsghdr));
      rest.remove_prefix(std::min<size_t>(NLMSG_ALIGN(header->nlmsg_len), rest.size()));
      if (header->nlmsg_seq != sequence_) continue;  // of a call that failed half way
      if (header->nlmsg_type == NLMSG_DONE) return {};
      if (header->nlmsg_type == NLMSG_ERROR) {
        const int error = -valueOf<int>(payload).value_or(-EPROTO);
        if (error != 0) return failSys(what, error);
        return {};
      }
      each(payload);
    }
  }
}

Result<> Netlink::request(NetlinkMessage& message, std::string_view what) {
  return query(message, what, [](std::string_view) {});
}

Result<int> Netlink::indexOf(const std::string& name) {
  NetlinkMessage message(RTM_GETLINK, NLM_F_ACK, anyLink());
  message.addName(IFLA_IFNAME, name);
  int index = 0;
  const auto found = query(message, "link " + name, [&](std::string_view answer) {
    if (const auto body = valueOf<ifinfomsg>(answer)) index = body->ifi_index;
  });
  if (!found && found.error().sys != ENODEV) return std::unexpected(found.error());
  if (index == 0) return fail(Code::kNotFound, "there is no link " + name);
  return index;
}

Result<> Netlink::makeVeth(const std::string& name, const std::string& peer, const Fd& peerSpace) {
  NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, anyLink());
  message.addName(IFLA_IFNAME, name);
  const size_t info = message.begin(IFLA_LINKINFO);
  message.add(IFLA_INFO_KIND, "veth");
  const size_t data = message.begin(IFLA_INFO_DATA);
  const size_t other = message.begin(VETH_INFO_PEER);
  message.addBody(anyLink()).addName(IFLA_IFNAME, peer);
  message.add(IFLA_NET_NS_FD, static_cast<uint32_t>(peerSpace.get()));
  message.end(other);
  message.end(data);
  message.end(info);
  return request(message, "new link " + name);
}

Result<> Netlink::makeBridge(const std::string& name) {
  NetlinkMessage message(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, anyLink());
  message.addName(IFLA_IFNAME, name);
  const size_t info = message.begin(IFLA_LINKINFO);
  message.add(IFLA_INFO_KIND, "bridge");
  message.end(info);
  return request(message, "new bridge " + name);
}

Result<> Netlink::removeLink(const std::string& name) {
  CAY_ASSIGN(const int index, indexOf(name));
  NetlinkMessage message(RTM_DELLINK, NLM_F_ACK, anyLink(index));
  return request(message, "remove link " + name);
}

Result<> Netlink::setUp(const std::string& name) {
  CAY_ASSIGN(const int index, indexOf(name));
  ifinfomsg body = anyLink(index);
  body.ifi_flags = IFF_UP;
  body.ifi_change = IFF_UP;
  NetlinkMessage message(RTM_NEWLINK, NLM_F_ACK, body);
  return request(message, "link " + name + " up");
}

Result<> Netlink::awaitCarrying(const std::string& name) {
  for (const int64_t until = monotonicMs() + kCarryingPatience.count(); monotonicMs() < until;) {
    NetlinkMessage message(RTM_GETLINK, NLM_F_ACK, anyLink());
    message.addName(IFLA_IFNAME, name);
    std::optional<uint8_t> state;
    CAY_TRY(query(message, "link " + name, [&](std::string_view answer) {
      state = valueOf<uint8_t>(netlinkAttribute(answer, sizeof(ifinfomsg), IFLA_OPERSTATE));
    }));
    if (state == kOperational) return {};
    std::this_thread::sleep_for(kCarryingStep);
  }
  return fail(Code::kUnreachable, "the link " + name + " does not come up");
}

Result<> Netlink::setMaster(const std::string& name, const std::string& bridge) {
  CAY_ASSIGN(const int index, indexOf(name));
  CAY_ASSIGN(const int master, indexOf(bridge));
  NetlinkMessage message(RTM_NEWLINK, NLM_F_ACK, anyLink(index));
  message.add(IFLA_MASTER, static_cast<uint32_t>(master));
  return request(message, "link " + name + " into " + bridge);
}

Result<> Netlink::addAddress(const std::string& name, Ipv4 address, uint8_t prefix) {
  CAY_ASSIGN(const int index, indexOf(name));
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = prefix;
  body.ifa_index = static_cast<uint32_t>(index);
  NetlinkMessage message(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, body);
  message.add(IFA_LOCAL, htonl(address.number)).add(IFA_ADDRESS, htonl(address.number));
  return request(message, "address " + address.text() + " of " + name);
}

Result<> Netlink::addDefaultRoute(Ipv4 via) {
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_STATIC;
  body.rtm_scope = RT_SCOPE_UNIVERSE;
  body.rtm_type = RTN_UNICAST;
  NetlinkMessage message(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, body);
  message.add(RTA_GATEWAY, htonl(via.number));
  return request(message, "default route via " + via.text());
}

Result<LinkTraffic> Netlink::traffic(const std::string& name) {
  NetlinkMessage message(RTM_GETLINK, NLM_F_ACK, anyLink());
  message.addName(IFLA_IFNAME, name);
  std::optional<rtnl_link_stats64> counts;
  CAY_TRY(query(message, "link " + name, [&](std::string_view answer) {
    counts = valueOf<rtnl_link_stats64>(netlinkAttribute(answer, sizeof(ifinfomsg), IFLA_STATS64));
  }));
  if (!counts) return fail(Code::kNotFound, "link " + name + " has no counters");
  return LinkTraffic{.receivedBytes = counts->rx_bytes, .sentBytes = counts->tx_bytes};
}

Result<std::vector<std::string>> Netlink::links() {
  NetlinkMessage message(RTM_GETLINK, NLM_F_DUMP, anyLink());
  std::vector<std::string> names;
  CAY_TRY(query(message, "links", [&](std::string_view answer) {
    names.emplace_back(textOf(netlinkAttribute(answer, sizeof(ifinfomsg), IFLA_IFNAME)));
  }));
  return names;
}

Result<std::vector<Ipv4>> Netlink::addresses() {
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  NetlinkMessage message(RTM_GETADDR, NLM_F_DUMP, body);
  std::vector<Ipv4> found;
  CAY_TRY(query(message, "addresses", [&](std::string_view answer) {
    if (const auto address =
            valueOf<uint32_t>(netlinkAttribute(answer, sizeof(ifaddrmsg), IFA_LOCAL))) {
      found.push_back({ntohl(*address)});
    }
  }));
  return found;
}

Result<std::vector<std::string>> Netlink::defaultRouteLinks() {
  rtmsg body{};
  body.rtm_family = AF_INET;
  NetlinkMessage message(RTM_GETROUTE, NLM_F_DUMP, body);
  std::vector<uint32_t> indices;
  CAY_TRY(query(message, "routes", [&](std::string_view answer) {
    const auto route = valueOf<rtmsg>(answer);
    const auto link = valueOf<uint32_t>(netlinkAttribute(answer, sizeof(rtmsg), RTA_OIF));
    if (route && link && route->rtm_dst_len == 0 && route->rtm_type == RTN_UNICAST &&
        route->rtm_table == RT_TABLE_MAIN) {
      indices.push_back(*link);
    }
  }));
  std::vector<std::string> names;
  for (const uint32_t index : indices) {
    NetlinkMessage ask(RTM_GETLINK, NLM_F_ACK, anyLink(static_cast<int>(index)));
    CAY_TRY(query(ask, "link of the default route", [&](std::string_view answer) {
      std::string name(textOf(netlinkAttribute(answer, sizeof(ifinfomsg), IFLA_IFNAME)));
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }));
  }
  return names;
}

}  // namespace cay::sys
