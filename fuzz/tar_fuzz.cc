// Archives from anybody: whatever the bytes, the parser must neither crash nor hand out what it
// should have refused, and unpacking must never touch anything outside of its folder.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "files/place.h"
#include "files/tar_unpack.h"
#include "sys/file.h"

namespace {

namespace fs = std::filesystem;
using cay::files::Place;
using cay::files::TarUnpack;

// <temp>/root/in is unpacked into; what lies around it must stay as it is.
struct World {
  fs::path top;
  std::shared_ptr<const Place> place;

  World() {
    std::string name = (fs::temp_directory_path() / "cay-fuzz-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    top = name;
    fs::create_directories(top / "root/in");
    std::ofstream(top / "root/neighbour") << "n";
    std::ofstream(top / "outside") << "o";
    auto root = cay::sys::openAt(AT_FDCWD, (top / "root").c_str(), O_PATH | O_DIRECTORY);
    auto created = root ? Place::create(*std::move(root), "/") : std::unexpected(root.error());
    if (!created) std::abort();
    place = *created;
  }
  ~World() {
    std::error_code ignored;
    fs::remove_all(top, ignored);
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void check() const {
    size_t entries = 0;
    for (const auto& entry : fs::directory_iterator(top / "root"))
      entries += entry.exists() ? 1 : 0;
    if (entries != 2 || fs::file_size(top / "root/neighbour") != 1) std::abort();
    if (fs::file_size(top / "outside") != 1) std::abort();
    if (std::distance(fs::directory_iterator(top), {}) != 2) std::abort();
  }
  void clear() const {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(top / "root/in")) {
      fs::remove_all(entry.path(), ignored);
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const World world;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  {
    auto unpack = TarUnpack::open(world.place, "/in");
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

// The checksum of every header that the mutations hit is put right again, or nothing behind it
// would ever be reached.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t maxSize);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t maxSize,
                                          unsigned seed) {
  using cay::kTarBlock;
  using cay::TarHeader;
  size = LLVMFuzzerMutate(data, size, maxSize);
  if (seed % 8 == 0) return size;
  for (size_t at = 0; at + kTarBlock <= size; at += kTarBlock) {
    auto* header = reinterpret_cast<TarHeader*>(data + at);
    if (std::string_view(header->magic, 5) != "ustar") continue;
    unsigned sum = cay::tarChecksum(*header);
    for (int i = 5; i >= 0; --i, sum >>= 3)
      header->checksum[i] = static_cast<char>('0' + (sum & 7));
    header->checksum[6] = '\0';
    header->checksum[7] = ' ';
  }
  return size;
}
