#include "layers/image_gc.h"

#include "layers/digest.h"
#include "sys/file.h"

namespace cay::layers {
namespace {

constexpr char kPulls[] = "/pulls";
constexpr char kBlobs[] = "/blobs/sha256";

Result<Fd> pullsFile(const std::string& folder) {
  return sys::openAt(AT_FDCWD, (folder + kPulls).c_str(), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

Result<size_t> removeBlobsExcept(const std::string& folder, const std::set<std::string>& digests) {
  const auto blobs = sys::openAt(AT_FDCWD, (folder + kBlobs).c_str(), O_RDONLY | O_DIRECTORY);
  if (!blobs && blobs.error().sys == ENOENT) return 0;
  if (!blobs) return std::unexpected(blobs.error());
  CAY_ASSIGN(const auto entries, sys::readDirectory(blobs->get()));
  size_t removed = 0;
  for (const sys::DirEntry& entry : entries) {
    if (digests.contains(std::string(kSha256) + entry.name)) continue;
    CAY_TRY(sys::unlinkAt(blobs->get(), entry.name.c_str()));
    ++removed;
  }
  return removed;
}

}  // namespace

Result<Fd> holdOffRemoval(const std::string& folder) {
  CAY_ASSIGN(Fd pulls, pullsFile(folder));
  CAY_TRY(sys::lockFd(pulls.get(), sys::Lock::kShared));
  return pulls;
}

Result<Collected> collectImages(const std::string& folder, ImageIndex& index, LayerStore& layers,
                                const std::set<std::string>& inUse) {
  CAY_ASSIGN(const Fd pulls, pullsFile(folder));
  CAY_ASSIGN(const bool alone, sys::tryLockFd(pulls.get(), sys::Lock::kExclusive));
  if (!alone) return fail(Code::kConflict, "an image is being pulled; nothing was removed");
  CAY_ASSIGN(const std::vector<StoredImage> images, index.dropUnused(inUse));
  std::set<std::string> neededLayers;
  std::set<std::string> neededBlobs;
  for (const StoredImage& image : images) {
    neededLayers.insert(image.layers.begin(), image.layers.end());
    neededBlobs.insert(image.blobs.begin(), image.blobs.end());
  }
  Collected collected;
  CAY_ASSIGN(collected.layers, layers.removeExcept(neededLayers));
  CAY_ASSIGN(collected.blobs, removeBlobsExcept(folder, neededBlobs));
  return collected;
}

}  // namespace cay::layers
