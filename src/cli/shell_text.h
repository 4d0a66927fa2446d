// Settings of environment variables as shells read them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cay::cli {

enum class Shell : uint8_t { kSh, kFish, kJson };

struct Setting {
  std::string name;
  std::optional<std::string> value;  // nullopt: is not to be set
  bool operator==(const Setting&) const = default;
};

// To be evaluated by the shell, whatever is in the values; or an object with null for what is not
// to be set.
std::string shellText(Shell shell, const std::vector<Setting>& settings);

}  // namespace cay::cli
