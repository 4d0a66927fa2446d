// The proxy that this machine's programs used before a hub became theirs, as the environment names
// it. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace cay::hub {

struct PreviousProxy {
  std::string host;
  uint16_t port = 0;
  std::string authorization;         // the value of Proxy-Authorization; empty: none
  std::vector<std::string> without;  // hosts that are reached without it, as NO_PROXY has them

  [[nodiscard]] bool isFor(std::string_view host, uint16_t port) const;
};

// nullptr: not set.
using Environment = std::function<const char*(const char* name)>;
// By https_proxy or all_proxy and no_proxy, in either case. nullopt if there is none, or if it is a
// hub of ours: that would lead in circles. kInvalid for one that cannot be used.
Result<std::optional<PreviousProxy>> previousProxy(const Environment& environment);

}  // namespace cay::hub
