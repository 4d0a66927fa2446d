// Unpacked layers, each named by the digest of its archive (its diff id).
//
//   <folder>/layers/<hex>   complete, and never changed again
//   <folder>/new/<id>       being made or removed (scratch_folder.h)
//
// Safe from every thread and process at once. Blocking.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "layers/layer_unpack.h"
#include "layers/scratch_folder.h"

namespace cay::layers {

class LayerStore {
 public:
  // `folder` must exist, be absolute and belong to us alone.
  LayerStore(std::string folder, Owners owners) : folder_(std::move(folder)), owners_(owners) {}

  [[nodiscard]] bool has(std::string_view diffId) const;
  [[nodiscard]] std::string path(std::string_view diffId) const;

  struct Added {
    std::string diffId;
    uint64_t bytes = 0;  // of the archive
  };
  // Reads an uncompressed archive to its end. kInvalid, and nothing is added, if its digest is not
  // `diffId`; any will do if that is empty. Once it returns, the layer survives a power failure.
  Result<Added> add(int tar, std::string_view diffId, const UnpackLimits& limits = {});

  // Removes the other layers, and what killed processes left half-made. The caller makes sure that
  // nobody begins to use one meanwhile (image_gc.h).
  Result<size_t> removeExcept(const std::set<std::string>& diffIds);

 private:
  [[nodiscard]] Result<Fd> layersFolder() const;
  [[nodiscard]] Result<Added> fill(int folder, int tar, std::string_view diffId,
                                   const UnpackLimits& limits) const;
  [[nodiscard]] Result<> keep(const ScratchFolder& made, const std::string& diffId) const;

  const std::string folder_;
  const Owners owners_;
};

}  // namespace cay::layers
