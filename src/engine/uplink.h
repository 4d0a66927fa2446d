// The router's way out: through the machine's kernel, or through slirp4netns. For cay-net.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "sys/netlink.h"

namespace cay::engine {

enum class Outbound : uint8_t {
  kAuto,    // the first of these that works
  kKernel,  // address translation by the kernel
  kSlirp,   // the same by slirp4netns: slower, but asks nothing of the machine
  kNone,    // loopback only
};

struct UplinkPlan {
  std::string leases;                // UplinkLease
  std::vector<sys::Ipv4> resolvers;  // what jobs will ask for names
};

class Uplink {
 public:
  virtual ~Uplink() = default;
  // The link in the router.
  [[nodiscard]] virtual std::string way() const = 0;
  // "kernel nat"
  [[nodiscard]] virtual std::string name() const = 0;
  // Addresses that the router must not let packets go to.
  [[nodiscard]] virtual std::vector<sys::Ipv4> closed() const = 0;
  // Makes the link; no packet passes it before the router's rules stand. Fails, with the reason, if
  // nothing comes through.
  virtual Result<> raise() = 0;
  // How often it wants upkeep(); 0: never.
  [[nodiscard]] virtual int upkeepMs() const { return 0; }
  // True if closed() has become another one.
  virtual Result<bool> upkeep() { return false; }
  // Nothing of it is left afterwards.
  virtual Result<> takeDown() = 0;
};

// From the machine's namespace, which the caller is in, to the router's.
Result<std::unique_ptr<Uplink>> kernelUplink(const Fd& router, const UplinkPlan& plan);
Result<std::unique_ptr<Uplink>> slirpUplink(const Fd& router);

}  // namespace cay::engine
