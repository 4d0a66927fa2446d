// Removing what no image needs any more: images without a name that nobody uses, layers and blobs
// of no image.
#pragma once

#include <set>
#include <string>

#include "base/error.h"
#include "base/fd.h"
#include "layers/image_index.h"
#include "layers/layer_store.h"

namespace cay::layers {

// For as long as this is open nothing is removed, in any process. To be held from before the first
// look at what is there until a new image is in the index.
Result<Fd> holdOffRemoval(const std::string& folder);

struct Collected {
  size_t layers = 0;
  size_t blobs = 0;
};
// `inUse`: digests of images that must stay, beside those with a name and those that are held
// (ImageIndex::hold): of sandboxes whose host is not running. kConflict while somebody holds it
// off. Blocking.
Result<Collected> collectImages(const std::string& folder, ImageIndex& index, LayerStore& layers,
                                const std::set<std::string>& inUse);

}  // namespace cay::layers
