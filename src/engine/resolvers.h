// Whom jobs ask for names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/netlink.h"

namespace cay::engine {

// The IPv4 name servers in the text of a resolv.conf, in order.
std::vector<sys::Ipv4> nameServersIn(std::string_view resolvConf);

// Those that jobs can reach: neither on the loopback nor on another address of the machine.
std::vector<sys::Ipv4> reachable(const std::vector<sys::Ipv4>& servers,
                                 const std::vector<sys::Ipv4>& machine);

// Those of this machine that jobs can reach; where its own are a local forwarder's, those which
// that one asks.
std::vector<sys::Ipv4> machineResolvers();

// As named by the user, who may name an address of the machine itself. kInvalid for what is no IPv4
// address or can never be reached.
Result<std::vector<sys::Ipv4>> parseResolvers(const std::vector<std::string>& texts);

std::string resolvConfText(const std::vector<sys::Ipv4>& servers);

}  // namespace cay::engine
