// Pulled and imported images as roots of sandboxes.
//
// What was handed out is held, so that no process removes its layers (image_gc.h), until
// removeUnused() has been told twice that nobody has it. Safe from every thread. Blocking.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "layers/image.h"
#include "layers/image_index.h"
#include "layers/layer_store.h"

namespace cay::layers {

class PulledImages {
 public:
  // `folder` must exist, be absolute and belong to us alone; the hub and `cay image` share it.
  PulledImages(std::string folder, isolation::Mode mode);

  // nullopt where an alias leads to the image `host`; see ImageIndex::find for errors.
  struct Resolved {
    std::optional<Image> image;
    std::string alias;  // in full, where there was one
  };
  Result<Resolved> resolve(std::string_view name);
  // By digest, whatever its names are by now.
  Result<Image> restore(std::string_view name, const std::string& digest);
  // See ImageStore::removeUnused.
  void removeUnused(const std::set<std::string>& inUse);

 private:
  Result<Image> imageOf(const std::string& name, const StoredImage& stored);

  const std::string folder_;
  const isolation::Mode mode_;
  ImageIndex index_;
  LayerStore layers_;

  struct Held {
    Fd use;
    bool isRecent = true;  // given out since the last removal: its sandbox may not be known yet
  };
  std::mutex mutex_;
  std::map<std::string, Held> held_;  // by digest
};

}  // namespace cay::layers
