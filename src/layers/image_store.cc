#include "layers/image_store.h"

#include "layers/local_root.h"

namespace cay::layers {

Result<Image> ImageStore::resolve(std::string_view name) {
  if (name.empty() || name == kHostImage) return host_.current();
  return localRoot({options_.roots, options_.folder, options_.mode}, name);
}

Result<Image> ImageStore::restore(std::string_view name, const std::string& version) {
  if (version.empty()) return resolve(name);
  return host_.restore(version);
}

}  // namespace cay::layers
