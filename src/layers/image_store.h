// The images that sandboxes can be made of: `host`, and the local roots that the operator offers.
//
// Safe from every thread; all calls block: refresh() for seconds when the machine has changed, the
// others for microseconds once it has been called.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "layers/host_image.h"
#include "layers/image.h"

namespace cay::layers {

class ImageStore {
 public:
  struct Options {
    std::string folder;  // images/ of the state folder: absolute, exists, ours alone
    std::string roots;   // a folder with one local root per entry; empty: there are none
    isolation::Mode mode = isolation::Mode::kFull;
    std::string machine = "/";  // what the image `host` is made of
  };

  explicit ImageStore(Options options)
      : options_(std::move(options)), host_(options_.folder, options_.mode, options_.machine) {}

  // See HostImage::refresh.
  Result<> refresh() { return host_.refresh(); }
  // "" is `host`. kInvalid for what is no image; the error lists those that there are.
  Result<Image> resolve(std::string_view name);
  // The image of a sandbox that was made earlier: of `host` the same version.
  Result<Image> restore(std::string_view name, const std::string& version);
  // See HostImage::removeUnused.
  void removeUnused(const std::set<std::string>& inUse) { host_.removeUnused(inUse); }

 private:
  const Options options_;
  HostImage host_;
};

}  // namespace cay::layers
