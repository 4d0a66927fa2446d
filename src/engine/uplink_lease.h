// Which hub of this machine has which uplink, and what was changed in the machine for their sake.
//
// A folder with a file for each uplink, locked by the process that has it: the kernel takes the
// lock away when that dies, and the next one who comes cleans up after it. Links that we made
// forward packets are noted beside; the last uplink to go makes them stop.
//
//   lock                        held while any of this changes
//   uplink.<number>             holds the name of its namespace
//   forwards.<namespace>.<link> did not forward before
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cay::engine {

class UplinkLease {
 public:
  // For the namespace that the caller is in.
  static Result<UplinkLease> take(const std::string& folder);

  [[nodiscard]] uint32_t number() const { return number_; }
  // Those of the links that forward nothing, or do so for uplinks alone.
  [[nodiscard]] Result<std::vector<std::string>> notForwarding(
      const std::vector<std::string>& links) const;
  Result<> openForwarding(const std::vector<std::string>& links);
  // In the same namespace as take(): the table, the link and the forwarding, as far as nobody else
  // needs it.
  Result<> giveBack();

 private:
  UplinkLease(Fd folder, std::string space)
      : folder_(std::move(folder)), space_(std::move(space)) {}
  // Of others in our namespace whose process has died.
  Result<> cleanUp();
  Result<bool> takeNumber(uint32_t number);
  Result<> stopForwarding();
  [[nodiscard]] std::string noteOf(const std::string& link) const;

  Fd folder_;
  std::string space_;
  uint32_t number_ = 0;
  Fd file_;
};

}  // namespace cay::engine
