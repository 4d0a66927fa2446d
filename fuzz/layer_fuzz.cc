// Layers of images from anybody: unpacking must never touch anything outside of its folder, nor
// leave a device or an attribute there that the kernel would obey.
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "layers/layer_unpack.h"
#include "layers/whiteout.h"
#include "sys/file.h"
#include "tar_world.h"

namespace {

namespace fs = std::filesystem;
namespace layers = cay::layers;

void checkAttributes(const fs::path& path) {
  std::array<char, 65536> names;
  const ssize_t size = ::llistxattr(path.c_str(), names.data(), names.size());
  for (size_t at = 0; size > 0 && at < static_cast<size_t>(size);) {
    const std::string_view name(names.data() + at);
    const bool expected = name == layers::kOpaque || name == layers::kUserOpaque ||
                          name == "security.capability" ||
                          (name.starts_with("user.") && !name.starts_with("user.overlay."));
    if (!expected) std::abort();
    at += name.size() + 1;
  }
}

void checkInside(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    struct stat stat{};
    if (::lstat(entry.path().c_str(), &stat) != 0) std::abort();
    if (S_ISBLK(stat.st_mode) || (S_ISCHR(stat.st_mode) && !layers::isWhiteout(stat))) std::abort();
    if (entry.path().filename().string().starts_with(".wh.")) std::abort();
    checkAttributes(entry.path());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TarWorld world;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const fs::path in = world.top / "root/in";
  auto folder = cay::sys::openAt(AT_FDCWD, in.c_str(), O_RDONLY | O_DIRECTORY);
  if (!folder) std::abort();
  const auto owners = ::geteuid() == 0 ? layers::Owners::kKept : layers::Owners::kOwn;
  layers::LayerUnpack unpack(*std::move(folder), owners, {.bytes = 1 << 20, .entries = 200});
  // In two pieces, so that every state is also left and entered again.
  const size_t half = size / 2;
  if (unpack.write(bytes.substr(0, half)) && unpack.write(bytes.substr(half))) {
    (void)unpack.finish();
  }
  world.check();
  checkInside(in);
  world.clear();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize,
                                          unsigned seed) {
  return mutateTar(data, size, maxSize, seed);
}
