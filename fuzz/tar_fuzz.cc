// Archives from anybody: whatever the bytes, the parser must neither crash nor hand out what it
// should have refused, and unpacking must never touch anything outside of its folder.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "files/place.h"
#include "files/tar_unpack.h"
#include "sys/file.h"
#include "tar_world.h"

namespace {

using cay::files::Place;
using cay::files::TarUnpack;

std::shared_ptr<const Place> placeIn(const TarWorld& world) {
  auto root = cay::sys::openAt(AT_FDCWD, (world.top / "root").c_str(), O_PATH | O_DIRECTORY);
  auto created = root ? Place::create(*std::move(root), "/") : std::unexpected(root.error());
  if (!created) std::abort();
  return *created;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TarWorld world;
  static const std::shared_ptr<const Place> place = placeIn(world);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  {
    auto unpack = TarUnpack::open(place, "/in");
    if (!unpack) std::abort();
    // In two pieces, so that every state is also left and entered again.
    const size_t half = size / 2;
    if ((*unpack)->write(bytes.substr(0, half)) && (*unpack)->write(bytes.substr(half))) {
      (void)(*unpack)->finish();
    }
  }
  world.check();
  world.clear();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize,
                                          unsigned seed) {
  return mutateTar(data, size, maxSize, seed);
}
