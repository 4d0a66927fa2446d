#include "layers/whiteout.h"

namespace cay::layers {

Result<> makeWhiteout(int dir, const char* name) {
  auto made = sys::makeNodeAt(dir, name, S_IFCHR);
  if (!made) return std::unexpected(std::move(made).error().wrap("a whiteout"));
  return {};
}

bool isWhiteout(const sys::Stat& stat) {
  return S_ISCHR(stat.st_mode) && stat.st_rdev == 0;
}

}  // namespace cay::layers
