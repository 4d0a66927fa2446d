// Paths from anybody: whatever the bytes, no walk may leave the root, and what path_text.h shows
// must be valid text that leads back to the same bytes.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/text.h"
#include "files/directories.h"
#include "files/entry.h"
#include "files/path_text.h"
#include "files/place.h"
#include "files/read.h"

namespace {

namespace fs = std::filesystem;
using cay::files::Place;

constexpr std::string_view kSecret = "the secret";

// A root with links of all kinds that try to lead out of it.
struct World {
  fs::path top;
  std::shared_ptr<const Place> place;
  cay::sys::Stat outside{};

  World() {
    std::string name = (fs::temp_directory_path() / "cay-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    top = name;
    fs::create_directories(top / "root/h/d");
    fs::create_directories(top / "out");
    std::ofstream(top / "out/s") << kSecret;
    std::ofstream(top / "root/h/f") << "inside";
    std::ofstream(top / "root/h/d/\xFF") << "inside";
    fs::create_symlink(top / "out", top / "root/h/a");
    fs::create_symlink("../../out", top / "root/h/r");
    fs::create_symlink("/..", top / "root/h/u");
    fs::create_symlink("/", top / "root/h/t");
    fs::create_symlink("l", top / "root/h/l");
    fs::create_symlink("d/../r", top / "root/h/m");
    auto root = cay::sys::openAt(AT_FDCWD, (top / "root").c_str(), O_PATH | O_DIRECTORY);
    auto created = root ? Place::create(*std::move(root), "/h") : std::unexpected(root.error());
    const auto stat = cay::sys::statAt(AT_FDCWD, (top / "out").c_str());
    if (!created || !stat) std::abort();
    place = *created;
    outside = *stat;
  }
  ~World() {
    std::error_code ignored;
    fs::remove_all(top, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
};

void checkInside(const World& world, const cay::sys::Stat& stat) {
  if (stat.st_dev == world.outside.st_dev && stat.st_ino == world.outside.st_ino) std::abort();
}

void checkLocation(const World& world, const cay::Result<cay::files::Location>& at) {
  if (!at) return;
  if (at->name.empty() || at->name.contains('/') || at->name == "..") std::abort();
  const auto stat = cay::sys::statFd(at->dir.get());
  if (stat) checkInside(world, *stat);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const World world;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);

  const std::string shown = cay::files::shown(bytes);
  if (!cay::isValidUtf8(shown)) std::abort();
  if (!cay::isValidUtf8(bytes) && cay::files::unshown(shown) != bytes) std::abort();

  const auto absolute = world.place->absolute(bytes);
  if (!absolute) return 0;
  if (!absolute->starts_with('/') || absolute->contains("//") || absolute->contains('\0'))
    std::abort();
  if (absolute->size() > 1 && absolute->ends_with('/')) std::abort();
  if (const auto fd = world.place->open(*absolute, O_PATH)) {
    const auto stat = cay::sys::statFd(fd->get());
    if (stat) checkInside(world, *stat);
  }
  checkLocation(world, world.place->locate(*absolute));
  checkLocation(world, world.place->locateTarget(*absolute));
  const auto reading = cay::files::openForReading(*world.place, bytes, {});
  if (reading && reading->head == kSecret) std::abort();
  (void)cay::files::stat(*world.place, bytes);
  (void)cay::files::list(*world.place, bytes, {});
  return 0;
}
