// The images that sandboxes can be made of: `host`, those that were pulled or imported, and the
// local roots that the operator offers.
//
// Safe from every thread; all calls block: refresh() for seconds when the machine has changed, the
// others for microseconds once it has been called.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "layers/host_image.h"
#include "layers/image.h"
#include "layers/pulled_images.h"

namespace cay::layers {

class ImageStore {
 public:
  struct Options {
    std::string folder;  // images/ of the state folder: absolute, exists, ours alone
    std::string roots;   // a folder with one local root per entry; empty: there are none
    isolation::Mode mode = isolation::Mode::kFull;
    std::string machine = "/";  // what the image `host` is made of
    std::string pulled = {};    // where pulled images are (pulled_images.h); empty: there are none
    std::optional<Image> given = {};  // what "" and `host` are, instead of an image of the machine
  };

  explicit ImageStore(Options options);

  // See HostImage::refresh; one that was given stays as it is.
  Result<> refresh() { return options_.given ? Result<>() : host_.refresh(); }
  // "" is `host`. Else asks, in this order: aliases, pulled images, local roots. Without pulled
  // images kInvalid for what is no image, and the error lists those that there are; with them
  // kNotFound for the name of an image that is not here.
  Result<Image> resolve(std::string_view name);
  // The image of a sandbox that was made earlier: of `host`, and of a pulled image, the same
  // version.
  Result<Image> restore(std::string_view name, const std::string& version);
  // See HostImage::removeUnused and image_gc.h.
  void removeUnused(const std::set<std::string>& inUse);

 private:
  Result<Image> usual();

  const Options options_;
  HostImage host_;
  std::optional<PulledImages> pulled_;
};

}  // namespace cay::layers
