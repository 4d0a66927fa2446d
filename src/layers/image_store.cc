#include "layers/image_store.h"

#include "base/text.h"
#include "layers/digest.h"
#include "layers/local_root.h"

namespace cay::layers {

ImageStore::ImageStore(Options options)
    : options_(std::move(options)), host_(options_.folder, options_.mode, options_.machine) {
  if (!options_.pulled.empty()) pulled_.emplace(options_.pulled, options_.mode);
}

Result<Image> ImageStore::resolve(std::string_view name) {
  if (name.empty() || name == kHostImage) return usual();
  if (options_.given && name == options_.given->name) return *options_.given;
  const LocalRoots roots{options_.roots, options_.folder, options_.mode};
  if (!pulled_) return localRoot(roots, name);
  auto found = pulled_->resolve(name);
  if (found) {
    if (found->image) return *std::move(found->image);
    CAY_ASSIGN(Image host, usual());
    host.alias = std::move(found->alias);
    return host;
  }
  const Code code = found.error().code;
  if (code != Code::kNotFound && code != Code::kInvalid) {
    return std::unexpected(std::move(found).error());
  }
  if (!options_.roots.empty()) {
    if (auto local = localRoot(roots, name)) return local;
  }
  return std::unexpected(std::move(found).error());
}

Result<Image> ImageStore::usual() {
  if (options_.given) return *options_.given;
  return host_.current();
}

Result<Image> ImageStore::restore(std::string_view name, const std::string& version) {
  if (version.empty()) return resolve(name);
  if (options_.given) {
    if (options_.given->version == version) return *options_.given;
    return fail(Code::kNotFound, "version " + quoted(version) + " of the image is not here");
  }
  if (isDigest(version) && pulled_) return pulled_->restore(name, version);
  return host_.restore(version);
}

void ImageStore::removeUnused(const std::set<std::string>& inUse) {
  if (!options_.given) host_.removeUnused(inUse);
  if (pulled_) pulled_->removeUnused(inUse);
}

}  // namespace cay::layers
