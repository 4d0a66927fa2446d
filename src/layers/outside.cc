#include "layers/outside.h"

#include "base/fd.h"
#include "base/text.h"
#include "sys/file.h"

namespace cay::layers {
namespace {

bool same(const sys::Stat& a, const sys::Stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Result<> requireOutside(const std::string& folder, int layer, const std::string& layerPath) {
  CAY_ASSIGN(const sys::Stat layerStat, sys::statFd(layer));
  // By way of "..", since there may be links in either path.
  CAY_ASSIGN(Fd at, sys::openAt(AT_FDCWD, folder.c_str(), O_PATH | O_DIRECTORY));
  CAY_ASSIGN(sys::Stat stat, sys::statFd(at.get()));
  for (;;) {
    if (same(stat, layerStat)) {
      return fail(Code::kConflict, "the state folder must not be below " + quoted(layerPath) +
                                       ", which sandboxes see; choose another with --state");
    }
    CAY_ASSIGN(Fd above, sys::openAt(at.get(), "..", O_PATH | O_DIRECTORY));
    CAY_ASSIGN(const sys::Stat aboveStat, sys::statFd(above.get()));
    if (same(aboveStat, stat)) return {};
    at = std::move(above);
    stat = aboveStat;
  }
}

}  // namespace cay::layers
