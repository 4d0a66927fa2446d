#include "layers/layer_store.h"

#include <cerrno>
#include <vector>

#include "base/sha256.h"
#include "base/text.h"
#include "layers/digest.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::layers {
namespace {

constexpr char kLayers[] = "layers";

Result<Fd> openFolder(int dir, const char* name) {
  return sys::openAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

Result<Fd> LayerStore::layersFolder() const {
  const std::string path = folder_ + "/" + kLayers;
  const auto made = sys::makeDirectoryAt(AT_FDCWD, path.c_str(), 0700);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  return openFolder(AT_FDCWD, path.c_str());
}

std::string LayerStore::path(std::string_view diffId) const {
  return folder_ + "/" + kLayers + "/" + std::string(digestHex(diffId));
}

bool LayerStore::has(std::string_view diffId) const {
  return isDigest(diffId) && sys::statAt(AT_FDCWD, path(diffId).c_str()).has_value();
}

Result<LayerStore::Added> LayerStore::add(int tar, std::string_view diffId,
                                          const UnpackLimits& limits) {
  if (!diffId.empty() && !isDigest(diffId)) {
    return fail(Code::kInvalid, "not a digest: " + quoted(diffId));
  }
  CAY_ASSIGN(const ScratchFolder made, ScratchFolder::make(folder_));
  CAY_ASSIGN(Added added, fill(made.folder(), tar, diffId, limits));
  CAY_TRY(keep(made, added.diffId));
  return added;
}

Result<LayerStore::Added> LayerStore::fill(int to, int tar, std::string_view diffId,
                                           const UnpackLimits& limits) const {
  CAY_ASSIGN(Fd folder, openFolder(to, "."));
  LayerUnpack unpack(std::move(folder), owners_, limits);
  Sha256 sha;
  Added added;
  std::vector<char> buffer(size_t{256} << 10);
  for (;;) {
    CAY_ASSIGN(const size_t got, sys::readSome(tar, buffer));
    if (got == 0) break;
    const std::string_view piece(buffer.data(), got);
    sha.update(piece);
    added.bytes += got;
    CAY_TRY(unpack.write(piece));
  }
  added.diffId = std::string(kSha256) + sha.finishHex();
  if (!diffId.empty() && added.diffId != diffId) {
    return fail(Code::kInvalid, "the layer's content is " + added.diffId +
                                    " where its image says " + std::string(diffId));
  }
  CAY_TRY(unpack.finish());
  CAY_TRY(sys::syncFileSystem(to));
  return added;
}

Result<> LayerStore::keep(const ScratchFolder& made, const std::string& diffId) const {
  CAY_ASSIGN(const Fd layers, layersFolder());
  const std::string name(digestHex(diffId));
  const auto moved = sys::renameAt(made.parent(), made.name(), layers.get(), name.c_str());
  // Somebody else had the same layer, and was faster.
  const bool isThere = !moved && (moved.error().sys == EEXIST || moved.error().sys == ENOTEMPTY);
  if (!moved && !isThere) return moved;
  return sys::syncFd(layers.get());
}

Result<size_t> LayerStore::removeExcept(const std::set<std::string>& diffIds) {
  ScratchFolder::sweep(folder_);
  CAY_ASSIGN(const Fd layers, layersFolder());
  CAY_ASSIGN(const auto entries, sys::readDirectory(layers.get()));
  size_t removed = 0;
  for (const sys::DirEntry& entry : entries) {
    if (diffIds.contains(std::string(kSha256) + entry.name)) continue;
    // Under another name first, so that nobody takes a half-removed one for a whole one.
    CAY_TRY(ScratchFolder::discard(folder_, layers.get(), entry.name.c_str()));
    ++removed;
  }
  return removed;
}

}  // namespace cay::layers
