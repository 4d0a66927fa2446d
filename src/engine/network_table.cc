#include "engine/network_table.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "engine/address_plan.h"
#include "engine/net_space.h"
#include "engine/router_rules.h"
#include "isolation/network.h"
#include "sys/file.h"

namespace cay::engine {
namespace {

constexpr char kJobLink[] = "eth0";

// The first free number from `next` on, going round at `count`.
template <typename Taken>
std::optional<uint32_t> inTurn(uint32_t& next, uint32_t count, Taken taken) {
  for (uint32_t tried = 0; tried < count; ++tried) {
    const uint32_t number = next;
    next = (next + 1) % count;
    if (!taken(number)) return number;
  }
  return std::nullopt;
}

struct NewSpace {
  Fd space;
  sys::Netlink netlink;
};

// Who is root of a user namespace alone has one group to name.
Result<> openPing() {
  auto all = setNetSetting("ipv4/ping_group_range", "0 2147483647");
  if (!all && all.error().sys == EINVAL) return setNetSetting("ipv4/ping_group_range", "0 0");
  return all;
}

Result<NewSpace> furnishSpace() {
  CAY_ASSIGN(Fd space, ownNetSpace());
  CAY_TRY(isolation::openLoopback());
  // Of links to come: the loopback keeps ::1.
  CAY_TRY(setNetSettingIfThere("ipv6/conf/default/disable_ipv6", "1"));
  CAY_TRY(openPing());
  CAY_ASSIGN(sys::Netlink netlink, sys::Netlink::open());
  return NewSpace{std::move(space), std::move(netlink)};
}

Result<> configure(sys::Netlink& inside, const LinkAddresses& addresses, uint8_t prefix,
                   bool leadsOut) {
  CAY_TRY(inside.addAddress(kJobLink, addresses.far, prefix));
  CAY_TRY(inside.setUp(kJobLink));
  if (leadsOut) CAY_TRY(inside.addDefaultRoute(addresses.near));
  return {};
}

}  // namespace

Result<uint32_t> NetworkTable::make(const std::string& group) {
  if (!group.empty() && !router_.hasLinks()) {
    return fail(Code::kUnreachable, "network groups cannot be had here: " + router_.name());
  }
  const auto number =
      inTurn(nextNetwork_, kMaxNetworks, [&](uint32_t n) { return entries_.contains(n); });
  if (!number) return fail(Code::kExhausted, "all networks are taken");
  CAY_ASSIGN(NewSpace made, inNewNetSpace(furnishSpace));
  Entry entry{.network = {.space = std::move(made.space), .address = {}, .group = group},
              .link = {}};
  if (!group.empty()) {
    CAY_TRY(connectMember(*number, entry, made.netlink));
  } else if (router_.leadsOut()) {
    CAY_TRY(connectAlone(*number, entry, made.netlink));
  }
  entries_.emplace(*number, std::move(entry));
  return *number;
}

Result<> NetworkTable::connectAlone(uint32_t number, Entry& entry, sys::Netlink& inside) {
  const LinkAddresses addresses = aloneAddresses(number);
  entry.link = kAloneLink + std::to_string(number);
  entry.network.address = addresses.far.text();
  sys::Netlink& router = router_.netlink();
  CAY_TRY(router.makeVeth(entry.link, kJobLink, entry.network.space));
  auto connected = configure(inside, addresses, kAlonePrefix, true);
  if (connected) connected = router.addAddress(entry.link, addresses.near, kAlonePrefix);
  if (connected) connected = router.setUp(entry.link);
  if (connected) connected = inside.awaitCarrying(kJobLink);
  if (!connected) (void)router.removeLink(entry.link);
  return connected;
}

Result<NetworkTable::Group*> NetworkTable::groupOf(const std::string& name) {
  if (const auto known = groups_.find(name); known != groups_.end()) return &known->second;
  const auto number = inTurn(nextGroup_, kMaxGroups, [&](uint32_t n) {
    return std::ranges::any_of(groups_,
                               [&](const auto& group) { return group.second.number == n; });
  });
  if (!number) return fail(Code::kExhausted, "all network groups are taken");
  const std::string bridge = kGroupLink + std::to_string(*number);
  sys::Netlink& router = router_.netlink();
  CAY_TRY(router.makeBridge(bridge));
  auto up = router.addAddress(bridge, memberAddresses(*number, 0).near, kGroupPrefix);
  if (up) up = router.setUp(bridge);
  if (!up) {
    (void)router.removeLink(bridge);
    return std::unexpected(std::move(up).error());
  }
  return &groups_.emplace(name, Group{.number = *number, .members = {}, .next = 0}).first->second;
}

Result<> NetworkTable::connectMember(uint32_t number, Entry& entry, sys::Netlink& inside) {
  CAY_ASSIGN(Group* const group, groupOf(entry.network.group));
  const auto member =
      inTurn(group->next, kMaxMembers, [&](uint32_t n) { return group->members.contains(n); });
  if (!member) return fail(Code::kExhausted, "the network group is full");
  group->members.insert(*member);
  entry.member = *member;
  entry.link = kMemberLink + std::to_string(number);
  const LinkAddresses addresses = memberAddresses(group->number, *member);
  entry.network.address = addresses.far.text();
  sys::Netlink& router = router_.netlink();
  const std::string bridge = kGroupLink + std::to_string(group->number);
  auto connected = router.makeVeth(entry.link, kJobLink, entry.network.space);
  if (connected) connected = configure(inside, addresses, kGroupPrefix, router_.leadsOut());
  if (connected) connected = router.setMaster(entry.link, bridge);
  if (connected) connected = router.setUp(entry.link);
  if (connected) connected = inside.awaitCarrying(kJobLink);
  if (connected) connected = router.awaitCarrying(bridge);
  if (!connected) {
    (void)router.removeLink(entry.link);
    (void)leaveGroup(entry);
  }
  return connected;
}

Result<> NetworkTable::leaveGroup(const Entry& entry) {
  const auto group = groups_.find(entry.network.group);
  if (group == groups_.end()) return {};
  group->second.members.erase(entry.member);
  if (!group->second.members.empty()) return {};
  const uint32_t number = group->second.number;
  groups_.erase(group);
  return router_.netlink().removeLink(kGroupLink + std::to_string(number));
}

Result<const MadeNetwork*> NetworkTable::find(uint32_t number) const {
  const auto entry = entries_.find(number);
  if (entry == entries_.end() || entry->second.hasLeft) {
    return fail(Code::kNotFound, "there is no network " + std::to_string(number));
  }
  return &entry->second.network;
}

Result<> NetworkTable::leave(uint32_t number) {
  CAY_TRY(find(number));
  entries_.at(number).hasLeft = true;
  leaving_.push_back(number);
  return {};
}

void NetworkTable::takeDownOneThatLeft() {
  const uint32_t number = leaving_.front();
  leaving_.pop_front();
  if (auto down = takeDown(number); !down) {
    log(Level::kError, "a network could not be taken down", {{"error", down.error().message}});
  }
}

Result<> NetworkTable::takeDown(uint32_t number) {
  auto node = entries_.extract(number);
  if (!node) return fail(Code::kNotFound, "there is no network " + std::to_string(number));
  std::erase(leaving_, number);  // the number is free for another
  const Entry& entry = node.mapped();
  if (entry.link.empty()) return {};
  auto removed = router_.netlink().removeLink(entry.link);
  // The last process in the namespace may have taken it along.
  if (!removed && removed.error().code == Code::kNotFound) removed = {};
  if (!entry.network.group.empty()) CAY_TRY(leaveGroup(entry));
  return removed;
}

Result<sys::LinkTraffic> NetworkTable::traffic(uint32_t number) {
  CAY_TRY(find(number));
  const Entry& entry = entries_.at(number);
  if (entry.link.empty()) return sys::LinkTraffic{};
  CAY_ASSIGN(const sys::LinkTraffic here, router_.netlink().traffic(entry.link));
  return sys::LinkTraffic{.receivedBytes = here.sentBytes, .sentBytes = here.receivedBytes};
}

Result<Fd> NetworkTable::socket(uint32_t number, int family) {
  CAY_ASSIGN(const MadeNetwork* const network, find(number));
  return inNetSpace(network->space, [family]() -> Result<Fd> {
    Fd made(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!made.valid()) return failSys("socket", errno);
    return made;
  });
}

std::vector<uint32_t> NetworkTable::numbers() const {
  std::vector<uint32_t> out;
  out.reserve(entries_.size());
  for (const auto& [number, entry] : entries_) out.push_back(number);
  return out;
}

bool NetworkTable::inhabited() const {
  std::set<std::string> ours;
  for (const auto& [number, entry] : entries_) {
    if (const auto name = netSpaceName(entry.network.space)) ours.insert(*name);
  }
  const auto proc = sys::openAt(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
  if (!proc) return true;
  const auto entries = sys::readDirectory(proc->get());
  if (!entries) return true;
  return std::ranges::any_of(*entries, [&](const sys::DirEntry& entry) {
    if (!parseUint(entry.name)) return false;
    const auto stat = sys::statAt(proc->get(), (entry.name + "/ns/net").c_str(), 0);
    // An ordinary user cannot look into keepers, and does not know who is one.
    if (!stat) return stat.error().sys == EACCES;
    return ours.contains(std::to_string(stat->st_ino));
  });
}

}  // namespace cay::engine
