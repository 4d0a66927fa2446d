// Which addresses the networks of jobs have. Pure arithmetic.
//
// Everything lies in 100.64.0.0/10, the range that providers share among themselves: no public
// address, and none of those that a machine's own network usually has.
//
//   100.64.0.0/16   uplinks of routers, /30 each: .1 is the machine, .2 the router
//   100.65.0.0/16   jobs that are alone, /31 each: the router, then the job
//   100.96.0.0/11   groups, /24 each: .1 is the router, members from .2 on
#pragma once

#include <cstdint>

#include "sys/netlink.h"

namespace cay::engine {

inline constexpr uint32_t kMaxUplinks = 1U << 14;
inline constexpr uint32_t kMaxNetworks = 1U << 15;
inline constexpr uint32_t kMaxGroups = 1U << 13;
inline constexpr uint32_t kMaxMembers = 250;

inline constexpr uint8_t kUplinkPrefix = 30;
inline constexpr uint8_t kAlonePrefix = 31;
inline constexpr uint8_t kGroupPrefix = 24;

struct LinkAddresses {
  sys::Ipv4 near;  // the side that packets leave through
  sys::Ipv4 far;   // the side that has them to send
  bool operator==(const LinkAddresses&) const = default;
};

// near: the machine, far: the router.
constexpr LinkAddresses uplinkAddresses(uint32_t uplink) {
  constexpr uint32_t kFirst = 0x64400000;
  return {.near = {kFirst + 4 * uplink + 1}, .far = {kFirst + 4 * uplink + 2}};
}

// near: the router, far: the job.
constexpr LinkAddresses aloneAddresses(uint32_t network) {
  constexpr uint32_t kFirst = 0x64410000;
  return {.near = {kFirst + 2 * network}, .far = {kFirst + 2 * network + 1}};
}

constexpr LinkAddresses memberAddresses(uint32_t group, uint32_t member) {
  constexpr uint32_t kFirst = 0x64600000;
  return {.near = {kFirst + 256 * group + 1}, .far = {kFirst + 256 * group + 2 + member}};
}

}  // namespace cay::engine
