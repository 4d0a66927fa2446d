#include "engine/router_rules.h"

#include <initializer_list>
#include <string_view>

#include "engine/address_plan.h"

namespace cay::engine {
namespace {

// Nobody's, the machine's own, the cloud's (169.254: metadata with credentials), those of jobs and
// routers of all hubs, groups of receivers, and reserved ones.
constexpr std::string_view kClosed =
    "{ 0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 100.64.0.0/10, 224.0.0.0/4, 240.0.0.0/4 }";

class Rules {
 public:
  // The pieces of one line.
  Rules& line(std::initializer_list<std::string_view> pieces) {
    for (const std::string_view piece : pieces) text_ += piece;
    text_ += '\n';
    return *this;
  }
  Rules& chain(std::string_view name, std::string_view hook) {
    return line({"  chain ", name, " {"}).line({"    type ", hook, ";"});
  }
  Rules& rule(std::initializer_list<std::string_view> pieces) {
    text_ += "    ";
    return line(pieces);
  }
  Rules& end() { return line({"  }"}); }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  std::string text_;
};

template <typename Items, typename Text>
std::string listOf(const Items& items, Text text) {
  std::string out;
  for (const auto& item : items) out += (out.empty() ? "" : ", ") + text(item);
  return "{ " + out + " }";
}

std::string listOf(const std::vector<std::string>& names) {
  return listOf(names, [](const std::string& name) { return '"' + name + '"'; });
}

std::string listOf(const std::vector<sys::Ipv4>& addresses) {
  return listOf(addresses, [](sys::Ipv4 address) { return address.text(); });
}

// What a job sends to the world. Without a way out there is no rule here, so all is dropped.
void addOutbound(Rules& rules, const RouterShape& shape) {
  if (shape.way.empty()) return;
  constexpr std::string_view kReject = " reject with icmp type admin-prohibited";
  rules.rule({"oifname != \"", shape.way, "\" drop"});
  rules.rule({"ip daddr ", kClosed, " drop"});
  if (!shape.closed.empty()) rules.rule({"ip daddr ", listOf(shape.closed), " drop"});
  rules.rule({"ct count over ", std::to_string(shape.mostConnections), kReject});
  rules.rule(
      {"add @of_one { ip saddr ct count over ", std::to_string(shape.mostOfOne), " }", kReject});
  rules.rule({"iifname \"", kAloneLink, "*\" accept"});
  rules.rule({"iifname \"", kGroupLink, "*\" accept"});
}

// Port 53 of the machine's own addresses that were named for it.
void addResolvers(Rules& rules, std::string_view link, const std::vector<sys::Ipv4>& resolvers) {
  if (resolvers.empty()) return;
  const std::string addresses = listOf(resolvers);
  for (const std::string_view protocol : {"udp", "tcp"}) {
    rules.rule({"iifname ", link, " ip daddr ", addresses, " ", protocol, " dport 53 accept"});
  }
}

}  // namespace

std::string routerRules(const RouterShape& shape) {
  Rules rules;
  // Added first, since removing what is not there is an error.
  rules.line({"table inet cay_router"}).line({"delete table inet cay_router"});
  rules.line({"table inet cay_router {"});
  rules.line({"  set of_one { type ipv4_addr; size ", std::to_string(2 * kMaxNetworks),
              "; flags dynamic; }"});
  // The router answers nobody; its own probe of the uplink is what gets answers.
  rules.chain("c_input", "filter hook input priority 0; policy drop");
  rules.rule({"ct state established accept"}).end();
  rules.chain("c_forward", "filter hook forward priority 0; policy drop");
  rules.rule({"meta nfproto ipv6 drop"});
  rules.rule({"ct state invalid drop"});
  rules.rule({"ct state { established, related } accept"});
  addOutbound(rules, shape);
  rules.end();
  if (!shape.way.empty()) {
    rules.chain("c_postrouting", "nat hook postrouting priority 100; policy accept");
    rules.rule({"oifname \"", shape.way, "\" masquerade"}).end();
  }
  return rules.line({"}"}).text();
}

std::string machineLink(uint32_t uplink) {
  return kMachineLink + std::to_string(uplink);
}

std::string machineTable(uint32_t uplink) {
  return "cay_uplink" + std::to_string(uplink);
}

std::string machineRules(const MachineShape& shape) {
  const std::string link = '"' + machineLink(shape.uplink) + '"';
  const std::string router = uplinkAddresses(shape.uplink).far.text();
  Rules rules;
  rules.line({"table inet ", machineTable(shape.uplink), " {"});
  rules.line({"  counter ", kLeftCounter, " { }"});
  // Before the address translation of others, which may send what is meant for an address of the
  // machine to somebody else, as for published ports of containers.
  rules.chain("c_prerouting", "filter hook prerouting priority -150; policy accept");
  addResolvers(rules, link, shape.resolvers);
  rules.rule({"iifname ", link, " fib daddr type { local, broadcast, anycast, multicast } drop"});
  rules.end();
  rules.chain("c_input", "filter hook input priority -10; policy accept");
  addResolvers(rules, link, shape.resolvers);
  rules.rule({"iifname ", link, " drop"}).end();
  rules.chain("c_forward", "filter hook forward priority -10; policy accept");
  rules.rule({"iifname ", link, " meta nfproto ipv6 drop"});
  rules.rule({"iifname ", link, " ip saddr != ", router, " drop"});
  rules.rule({"iifname ", link, " oifname != ", listOf(shape.ways), " drop"});
  rules.rule({"iifname ", link, " ip daddr ", kClosed, " drop"});
  rules.rule({"oifname ", link, " ct state != { established, related } drop"});
  if (!shape.opened.empty()) {
    // These did not forward before we asked for it, and nobody else is to gain by it.
    rules.rule({"iifname ", listOf(shape.opened), " oifname != \"", kMachineLink, "*\" drop"});
  }
  rules.end();
  rules.chain("c_postrouting", "nat hook postrouting priority 100; policy accept");
  rules.rule({"ip saddr ", router, " counter name ", kLeftCounter, " masquerade"}).end();
  return withoutMachineRules(shape.uplink) + rules.line({"}"}).text();
}

std::string withoutMachineRules(uint32_t uplink) {
  // Added first, since removing what is not there is an error.
  const std::string table = "table inet " + machineTable(uplink) + "\n";
  return table + "delete " + table;
}

}  // namespace cay::engine
