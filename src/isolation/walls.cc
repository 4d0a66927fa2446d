#include "isolation/walls.h"

namespace cay::isolation {

std::string_view verdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHeld:
      return "held";
    case Verdict::kWeaker:
      return "weaker";
    case Verdict::kAbsent:
      return "absent";
  }
  return "absent";
}

}  // namespace cay::isolation
