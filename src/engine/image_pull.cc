#include "engine/image_pull.h"

#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "engine/plain_tar.h"
#include "engine/skopeo.h"
#include "layers/digest.h"
#include "layers/image_gc.h"
#include "layers/image_name.h"
#include "layers/layer_store.h"
#include "layers/oci_layout.h"
#include "layers/outside.h"
#include "layers/scratch_folder.h"
#include "sys/file.h"
#include "sys/io.h"

namespace cay::engine {
namespace {

using layers::OciImage;
using layers::OciLayout;
using layers::StoredImage;

std::string blobsIn(const PullOptions& options) {
  return options.folder + "/blobs";
}

Result<layers::LayerStore::Added> addLayer(const PullOptions& options, Fd file,
                                           std::string_view diffId) {
  layers::LayerStore store(options.folder, options.owners);
  CAY_ASSIGN(PlainTar tar, PlainTar::open(std::move(file)));
  CAY_ASSIGN(auto added, store.add(tar.fd(), diffId, options.limits));
  CAY_TRY(tar.finish());
  return added;
}

Result<StoredImage> unpackImage(const PullOptions& options, const OciLayout& layout) {
  CAY_ASSIGN(const OciImage image, layout.read());
  const layers::LayerStore store(options.folder, options.owners);
  StoredImage stored;
  stored.digest = image.digest;
  stored.config = image.config;
  stored.blobs = {image.digest, image.configDigest};
  stored.addedAtMs = wallMs();
  PullProgress progress{.stage = PullProgress::Stage::kUnpacking, .total = image.layers.size()};
  for (const layers::OciLayer& layer : image.layers) {
    if (options.progress) options.progress(progress);
    if (!store.has(layer.diffId)) {
      CAY_ASSIGN(Fd blob, layout.openVerified(layer.digest, layer.size));
      CAY_TRY(addLayer(options, std::move(blob), layer.diffId));
    }
    stored.layers.push_back(layer.diffId);
    stored.blobs.push_back(layer.digest);
    stored.bytes += layer.size;
    ++progress.done;
  }
  if (options.progress) options.progress(progress);
  return stored;
}

// Those that are not what they are called, as after a power failure: skopeo would take them for
// fetched for ever. True if there was one.
bool removeDamaged(const std::string& blobs, const std::vector<std::string>& digests) {
  bool removed = false;
  for (const std::string& digest : digests) {
    const std::string path = blobs + "/sha256/" + std::string(layers::digestHex(digest));
    const auto file = sys::openAt(AT_FDCWD, path.c_str(), O_RDONLY | O_NOFOLLOW);
    const auto found = file ? layers::digestOfFile(file->get()) : std::unexpected(file.error());
    if (!found || *found == digest) continue;
    removed = sys::unlinkAt(AT_FDCWD, path.c_str()).has_value() || removed;
  }
  return removed;
}

Result<StoredImage> fetchAndUnpack(const PullOptions& options, const layers::ImageName& name) {
  for (int attempt = 1;; ++attempt) {
    CAY_ASSIGN(const layers::ScratchFolder scratch, layers::ScratchFolder::make(options.folder));
    const auto tell = [&](size_t blobs, uint64_t bytes) {
      if (!options.progress) return;
      options.progress({.done = blobs, .bytes = bytes});
    };
    CAY_ASSIGN(const auto digests, fetchImage({.name = name,
                                               .layout = scratch.path(),
                                               .blobs = blobsIn(options),
                                               .authFile = options.authFile,
                                               .blobBytes = options.limits.bytes,
                                               .progress = tell}));
    auto stored = unpackImage(options, OciLayout(scratch.path(), blobsIn(options)));
    if (stored || attempt > 1 || !removeDamaged(blobsIn(options), digests)) return stored;
  }
}

Result<StoredImage> keepImported(const PullOptions& options, std::string_view name,
                                 const layers::LayerStore::Added& layer) {
  StoredImage stored;
  stored.digest = layers::digestOf("imported " + layer.diffId);
  stored.layers = {layer.diffId};
  stored.bytes = layer.bytes;
  stored.addedAtMs = wallMs();
  layers::ImageIndex index(options.folder);
  CAY_TRY(index.put(name, stored));
  return stored;
}

}  // namespace

Result<StoredImage> pullImage(const PullOptions& options, std::string_view name) {
  if (name == layers::kHostImage) {
    return fail(Code::kInvalid, "'host' is the name of the built-in image");
  }
  CAY_ASSIGN(const layers::ImageName parsed, layers::parseImageName(name));
  CAY_ASSIGN(const Fd hold, layers::holdOffRemoval(options.folder));
  CAY_ASSIGN(StoredImage stored, fetchAndUnpack(options, parsed));
  layers::ImageIndex index(options.folder);
  CAY_TRY(index.put(name, stored));
  return stored;
}

Result<StoredImage> importTar(const PullOptions& options, std::string_view name,
                              const std::string& file) {
  CAY_TRY(layers::parseImageName(name));
  CAY_ASSIGN(Fd tar, sys::openAt(AT_FDCWD, file.c_str(), O_RDONLY));
  CAY_ASSIGN(const sys::Stat stat, sys::statFd(tar.get()));
  if (!S_ISREG(stat.st_mode)) return fail(Code::kInvalid, quoted(file) + " is not a file");
  CAY_ASSIGN(const Fd hold, layers::holdOffRemoval(options.folder));
  auto added = addLayer(options, std::move(tar), "");
  if (!added) return std::unexpected(std::move(added).error().wrap(quoted(file)));
  return keepImported(options, name, *added);
}

Result<StoredImage> importFolder(const PullOptions& options, std::string_view name,
                                 const std::string& folder) {
  CAY_TRY(layers::parseImageName(name));
  CAY_ASSIGN(const Fd root, sys::openAt(AT_FDCWD, folder.c_str(), O_RDONLY | O_DIRECTORY));
  CAY_TRY(layers::requireOutside(options.folder, root.get(), folder));
  CAY_ASSIGN(std::string program, findTool("tar", "tar"));
  CAY_ASSIGN(const Fd hold, layers::holdOffRemoval(options.folder));
  CAY_ASSIGN(sys::Pipe pipe, sys::makePipe());
  // The times of access and change would give the same content another digest each time.
  CAY_ASSIGN(
      ToolProcess tar,
      ToolProcess::start(
          {.program = std::move(program),
           .arguments = {"--create", "--file=-", "--directory=" + folder, "--one-file-system",
                         "--numeric-owner", "--sort=name", "--format=posix",
                         "--pax-option=delete=atime,delete=ctime", "--xattrs",
                         "--xattrs-include=user.*", "--xattrs-include=security.capability", "."},
           .out = pipe.write.get()}));
  pipe.write.reset();
  layers::LayerStore store(options.folder, options.owners);
  CAY_ASSIGN(const auto added, store.add(pipe.read.get(), "", options.limits));
  CAY_TRY(tar.wait());
  return keepImported(options, name, added);
}

}  // namespace cay::engine
