#include "cli/arguments.h"

namespace cay::cli {

Result<uint64_t> readNumber(std::string_view text, uint64_t low, uint64_t high) {
  const auto number = parseUint(text);
  if (!number || *number < low || *number > high) {
    return fail(Code::kInvalid,
                "a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return *number;
}

Result<uint16_t> readPort(std::string_view text) {
  CAY_ASSIGN(const uint64_t port, readNumber(text, 0, UINT16_MAX));
  return static_cast<uint16_t>(port);
}

void addState(CLI::App& verb, std::string& state) {
  const auto read = [](const std::string& text) -> Result<std::string> {
    if (text.empty()) return fail(Code::kInvalid, "a folder");
    return text;
  };
  addOption(verb, "--state", state, read,
            "folder of the hub (default: /var/lib/cay for root, else cay in $XDG_STATE_HOME or "
            "~/.local/state)")
      ->type_name("DIR")
      ->envname("CAY_STATE");
}

}  // namespace cay::cli
