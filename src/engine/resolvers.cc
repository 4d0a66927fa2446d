#include "engine/resolvers.h"

#include <algorithm>

#include "base/text.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

constexpr size_t kMostServers = 3;  // what C libraries look at

bool isLoopback(sys::Ipv4 address) {
  return address.number >> 24 == 127 || address.number == 0;
}

}  // namespace

std::vector<sys::Ipv4> nameServersIn(std::string_view resolvConf) {
  std::vector<sys::Ipv4> found;
  for (const std::string_view line : split(resolvConf, '\n')) {
    const auto parts = words(line);
    if (parts.size() < 2 || parts[0] != "nameserver") continue;
    if (const auto address = sys::parseIpv4(parts[1])) found.push_back(*address);
  }
  return found;
}

std::vector<sys::Ipv4> reachable(const std::vector<sys::Ipv4>& servers,
                                 const std::vector<sys::Ipv4>& machine) {
  std::vector<sys::Ipv4> out;
  for (const sys::Ipv4 server : servers) {
    if (isLoopback(server) || std::ranges::find(machine, server) != machine.end()) continue;
    if (out.size() < kMostServers) out.push_back(server);
  }
  return out;
}

std::vector<sys::Ipv4> machineResolvers() {
  std::vector<sys::Ipv4> own;
  if (auto netlink = sys::Netlink::open()) {
    if (auto found = netlink->addresses()) own = *std::move(found);
  }
  for (const char* file : {"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}) {
    const auto text = sys::readFile(file);
    if (!text) continue;
    auto found = reachable(nameServersIn(*text), own);
    if (!found.empty()) return found;
  }
  return {};
}

Result<std::vector<sys::Ipv4>> parseResolvers(const std::vector<std::string>& texts) {
  std::vector<sys::Ipv4> out;
  for (const std::string& text : texts) {
    CAY_ASSIGN(const sys::Ipv4 address, sys::parseIpv4(text));
    if (isLoopback(address)) {
      return fail(Code::kInvalid, "jobs cannot reach a resolver at " + text +
                                      ": it is the loopback of whoever asks");
    }
    out.push_back(address);
  }
  return out;
}

std::string resolvConfText(const std::vector<sys::Ipv4>& servers) {
  std::string out;
  for (const sys::Ipv4 server : servers) out += "nameserver " + server.text() + "\n";
  return out;
}

}  // namespace cay::engine
