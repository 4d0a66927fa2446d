// The walls by name, and what was found out about each by trying the forbidden act.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cay::isolation {

enum class Verdict : uint8_t { kHeld, kWeaker, kAbsent };

struct Wall {
  std::string name;
  Verdict verdict = Verdict::kAbsent;
  std::string why;     // what was tried and what came of it
  std::string remedy;  // what to change on the host to have it held; empty if it is
  bool operator==(const Wall&) const = default;
};

using Walls = std::vector<Wall>;

std::string_view verdictName(Verdict verdict);

}  // namespace cay::isolation
