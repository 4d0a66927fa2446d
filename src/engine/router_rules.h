// What may pass between jobs, the machine and the world, as texts for `nft -f -`. Pure.
//
// The rules are the same for all jobs, whoever comes and goes: they speak of kinds of links, by the
// names of which they are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sys/netlink.h"

namespace cay::engine {

// In the router: v<number> leads to a job, g<number> is the bridge of a group, of which w<number>
// are the ports. In the machine: cayup<number> leads to a router.
inline constexpr char kAloneLink[] = "v";
inline constexpr char kGroupLink[] = "g";
inline constexpr char kMemberLink[] = "w";
inline constexpr char kMachineLink[] = "cayup";

struct RouterShape {
  std::string way;                // the link that leads out; empty: there is none
  uint32_t mostConnections = 0;   // of all jobs together
  uint32_t mostOfOne = 0;         // of one job
  std::vector<sys::Ipv4> closed;  // beside those that always are
};
// For the router's namespace; replaces those of before.
std::string routerRules(const RouterShape& shape);

struct MachineShape {
  uint32_t uplink = 0;
  std::vector<std::string> ways;     // links that lead out of the machine
  std::vector<std::string> opened;   // those of them that forward nothing but for us
  std::vector<sys::Ipv4> resolvers;  // own addresses of the machine whose port 53 jobs may use
};
// For the machine's own namespace; replaces what was left there under the same name.
std::string machineRules(const MachineShape& shape);
// Removes them, whether or not they are there.
std::string withoutMachineRules(uint32_t uplink);

std::string machineLink(uint32_t uplink);
std::string machineTable(uint32_t uplink);
// Counts what has left the machine from this router.
inline constexpr char kLeftCounter[] = "left";

}  // namespace cay::engine
