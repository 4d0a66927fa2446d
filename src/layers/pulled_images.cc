#include "layers/pulled_images.h"

#include <ranges>

#include "base/log.h"
#include "base/text.h"
#include "layers/image_gc.h"

namespace cay::layers {

PulledImages::PulledImages(std::string folder, isolation::Mode mode)
    : folder_(std::move(folder)),
      mode_(mode),
      index_(folder_),
      layers_(folder_, mode == isolation::Mode::kFull ? Owners::kKept : Owners::kOwn) {}

Result<PulledImages::Resolved> PulledImages::resolve(std::string_view name) {
  CAY_ASSIGN(const ImageIndex::Found found, index_.find(name));
  Resolved resolved{.image = std::nullopt, .alias = found.alias};
  if (found.isHost) return resolved;
  CAY_ASSIGN(resolved.image, imageOf(found.name, found.image));
  resolved.image->alias = found.alias;
  return resolved;
}

Result<Image> PulledImages::restore(std::string_view name, const std::string& digest) {
  CAY_ASSIGN(const StoredImage stored, index_.findDigest(digest));
  return imageOf(std::string(name), stored);
}

Result<Image> PulledImages::imageOf(const std::string& name, const StoredImage& stored) {
  if (mode_ == isolation::Mode::kRestricted) {
    return fail(Code::kInvalid, "image " + quoted(name) +
                                    ": in restricted mode sandboxes have no root of their own");
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto held = held_.find(stored.digest);
    if (held == held_.end()) {
      CAY_ASSIGN(Fd use, index_.hold(stored.digest));
      held_[stored.digest] = {.use = std::move(use)};
    } else {
      held->second.isRecent = true;
    }
  }
  Image image{
      .name = name, .version = stored.digest, .overlays = {{"/", {}}}, .config = stored.config};
  for (const std::string& layer : std::views::reverse(stored.layers)) {
    if (!layers_.has(layer)) {
      return fail(Code::kInternal, "image " + quoted(name) + " has lost its layer " + layer +
                                       ": pull or import it again");
    }
    image.overlays[0].lowers.push_back(layers_.path(layer));
  }
  return image;
}

void PulledImages::removeUnused(const std::set<std::string>& inUse) {
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(held_, [&](const auto& held) {
      return !held.second.isRecent && !inUse.contains(held.first);
    });
    for (auto& [digest, held] : held_) held.isRecent = false;
  }
  const auto collected = collectImages(folder_, index_, layers_, inUse);
  if (!collected && collected.error().code != Code::kConflict) {
    log(Level::kWarn, "unused layers could not be removed", {{"error", collected.error().message}});
  }
}

}  // namespace cay::layers
