#include "layers/layer_store.h"

#include <cerrno>
#include <vector>

#include "base/ids.h"
#include "base/sha256.h"
#include "base/text.h"
#include "layers/digest.h"
#include "sys/file.h"
#include "sys/io.h"
#include "sys/remove_tree.h"

namespace cay::layers {
namespace {

constexpr char kLayers[] = "layers";
constexpr char kNew[] = "new";

Result<Fd> openFolder(int dir, const char* name) {
  return sys::openAt(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

}  // namespace

Result<Fd> LayerStore::part(const char* name) const {
  CAY_ASSIGN(const Fd folder, openFolder(AT_FDCWD, folder_.c_str()));
  const auto made = sys::makeDirectoryAt(folder.get(), name, 0700);
  if (!made && made.error().sys != EEXIST) return std::unexpected(made.error());
  return openFolder(folder.get(), name);
}

std::string LayerStore::path(std::string_view diffId) const {
  return folder_ + "/" + kLayers + "/" + std::string(digestHex(diffId));
}

bool LayerStore::has(std::string_view diffId) const {
  return isDigest(diffId) && sys::statAt(AT_FDCWD, path(diffId).c_str()).has_value();
}

Result<LayerStore::Work> LayerStore::begin() const {
  for (;;) {
    Work work;
    CAY_ASSIGN(work.all, part(kNew));
    work.name = newId("layer");
    CAY_TRY(sys::makeDirectoryAt(work.all.get(), work.name.c_str(), 0700));
    auto folder = openFolder(work.all.get(), work.name.c_str());
    if (!folder && folder.error().sys == ENOENT) continue;  // swept before it had its lock
    if (!folder) return std::unexpected(std::move(folder).error());
    work.folder = *std::move(folder);
    CAY_ASSIGN(const bool locked, sys::tryLockFd(work.folder.get(), sys::Lock::kExclusive));
    if (locked) return work;
  }
}

Result<LayerStore::Added> LayerStore::add(int tar, std::string_view diffId,
                                          const UnpackLimits& limits) {
  if (!diffId.empty() && !isDigest(diffId)) {
    return fail(Code::kInvalid, "not a digest: " + quoted(diffId));
  }
  CAY_ASSIGN(const Work work, begin());
  auto added = fill(work, tar, diffId, limits);
  if (added) {
    if (auto kept = keep(work, added->diffId); !kept) {
      added = std::unexpected(std::move(kept).error());
    }
  }
  // Nothing is there any more if all went well.
  (void)sys::removeTree(work.all.get(), work.name.c_str());
  return added;
}

Result<LayerStore::Added> LayerStore::fill(const Work& work, int tar, std::string_view diffId,
                                           const UnpackLimits& limits) const {
  CAY_ASSIGN(Fd folder, openFolder(work.folder.get(), "."));
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
  CAY_TRY(sys::syncFileSystem(work.folder.get()));
  return added;
}

Result<> LayerStore::keep(const Work& work, const std::string& diffId) const {
  CAY_ASSIGN(const Fd layers, part(kLayers));
  const std::string name(digestHex(diffId));
  const auto moved = sys::renameAt(work.all.get(), work.name.c_str(), layers.get(), name.c_str());
  // Somebody else had the same layer, and was faster.
  const bool isThere = !moved && (moved.error().sys == EEXIST || moved.error().sys == ENOTEMPTY);
  if (!moved && !isThere) return moved;
  return sys::syncFd(layers.get());
}

Result<size_t> LayerStore::removeExcept(const std::set<std::string>& diffIds) {
  sweep();
  CAY_ASSIGN(const Fd layers, part(kLayers));
  CAY_ASSIGN(const Fd all, part(kNew));
  CAY_ASSIGN(const auto entries, sys::readDirectory(layers.get()));
  size_t removed = 0;
  for (const sys::DirEntry& entry : entries) {
    if (diffIds.contains(std::string(kSha256) + entry.name)) continue;
    // Under another name first, so that nobody takes a half-removed one for a whole one. Without a
    // lock: whoever comes across it may help.
    const std::string leaving = newId("old");
    CAY_TRY(sys::renameAt(layers.get(), entry.name.c_str(), all.get(), leaving.c_str()));
    CAY_TRY(sys::removeTree(all.get(), leaving.c_str()));
    ++removed;
  }
  return removed;
}

// A folder without a lock has nobody who would finish it.
void LayerStore::sweep() const {
  const auto all = part(kNew);
  const auto entries = all ? sys::readDirectory(all->get()) : std::unexpected(all.error());
  if (!entries) return;
  for (const sys::DirEntry& entry : *entries) {
    const auto folder = openFolder(all->get(), entry.name.c_str());
    if (folder && !sys::tryLockFd(folder->get(), sys::Lock::kExclusive).value_or(false)) continue;
    (void)sys::removeTree(all->get(), entry.name.c_str());
  }
}

}  // namespace cay::layers
