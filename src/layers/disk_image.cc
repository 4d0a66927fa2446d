#include "layers/disk_image.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/text.h"
#include "layers/loop_device.h"
#include "layers/make_ext4.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/mount.h"

namespace cay::layers {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr size_t kMostTemplates = 16;
constexpr char kTemplatePrefix[] = "ext4-";  // and the size in MiB

// Copies what is not a hole. `to` is a new file.
Result<> copySparse(int from, int to, uint64_t bytes) {
  CAY_TRY(sys::truncateFd(to, bytes));
  constexpr size_t kPiece = size_t{128} << 10;
  const auto buffer = std::make_unique_for_overwrite<char[]>(kPiece);
  off_t at = 0;
  for (;;) {
    at = ::lseek(from, at, SEEK_DATA);
    if (at == -1) return errno == ENXIO ? Result<>() : failSys("lseek", errno);
    const off_t end = ::lseek(from, at, SEEK_HOLE);
    if (end == -1) return failSys("lseek", errno);
    while (at < end) {
      const size_t wanted = std::min(kPiece, static_cast<size_t>(end - at));
      CAY_ASSIGN(const size_t got,
                 sys::preadSome(from, {buffer.get(), wanted}, static_cast<uint64_t>(at)));
      if (got == 0) return fail(Code::kInternal, "a template disk has shrunk");
      CAY_TRY(sys::pwriteAll(to, {buffer.get(), got}, static_cast<uint64_t>(at)));
      at += static_cast<off_t>(got);
    }
  }
}

}  // namespace

Result<> DiskImages::make(int folder, const char* name, uint64_t bytes) {
  if (bytes < kMinBytes) {
    return fail(Code::kInvalid,
                "a disk needs at least " + std::to_string(kMinBytes / kMiB) + " MiB");
  }
  bytes -= bytes % kMiB;
  CAY_ASSIGN(const Fd original, openTemplate(bytes));
  CAY_ASSIGN(const Fd disk, sys::openAt(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600));
  auto copied = copySparse(original.get(), disk.get(), bytes);
  if (!copied) (void)sys::unlinkAt(folder, name);
  return copied;
}

Result<Fd> DiskImages::openTemplate(uint64_t bytes) {
  const std::string name = kTemplatePrefix + std::to_string(bytes / kMiB);
  const std::scoped_lock lock(mutex_);
  auto found = sys::openAt(folder_.get(), name.c_str(), O_RDONLY);
  if (found || found.error().sys != ENOENT) return found;
  forgetOldTemplates();
  return formatTemplate(name.c_str(), bytes);
}

// Has its name only when it is ready.
Result<Fd> DiskImages::formatTemplate(const char* name, uint64_t bytes) {
  CAY_ASSIGN(Fd file, sys::openAt(folder_.get(), ".", O_TMPFILE | O_RDWR, 0600));
  CAY_TRY(sys::truncateFd(file.get(), bytes));
  CAY_TRY(makeExt4(file.get()));
  CAY_TRY(sys::linkAt(AT_FDCWD, sys::fdPath(file.get()).c_str(), folder_.get(), name,
                      AT_SYMLINK_FOLLOW));
  return file;
}

// Sizes come from requests, so that there could be any number of them.
void DiskImages::forgetOldTemplates() {
  const auto entries = sys::readDirectory(folder_.get());
  if (!entries || entries->size() < kMostTemplates) return;
  std::vector<std::pair<int64_t, std::string>> byAge;
  for (const sys::DirEntry& entry : *entries) {
    const auto stat = sys::statAt(folder_.get(), entry.name.c_str());
    if (stat) byAge.emplace_back(sys::mtimeMs(*stat), entry.name);
  }
  std::ranges::sort(byAge);
  for (size_t i = 0; i + kMostTemplates / 2 < byAge.size(); ++i) {
    (void)sys::unlinkAt(folder_.get(), byAge[i].second.c_str());
  }
}

Result<> DiskImages::tryOut() {
  const std::string name = newId("try");
  CAY_TRY(make(folder_.get(), name.c_str(), kMinBytes));
  auto file = sys::openAt(folder_.get(), name.c_str(), O_RDWR);
  (void)sys::unlinkAt(folder_.get(), name.c_str());
  if (!file) return std::unexpected(std::move(file).error());
  CAY_ASSIGN(const Fd device, attachLoop(*file));
  const sys::MountOption source{"source", sys::fdPath(device.get())};
  CAY_TRY(sys::newMount("ext4", {&source, 1}, {.noDevices = true}));
  return {};
}

}  // namespace cay::layers
