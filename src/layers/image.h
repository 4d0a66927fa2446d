// Images: what a sandbox's root is made of below its own writable top.
#pragma once

#include <string>
#include <vector>

#include "isolation/plan.h"

namespace cay::layers {

inline constexpr char kHostImage[] = "host";

struct Image {
  std::string name;
  // Which of the prepared states of the image `host` this is; a sandbox keeps it for its life
  // (ImageStore::removeUnused). Empty for a local root.
  std::string version;
  std::vector<isolation::Overlay> overlays;  // in mount order; none in restricted mode
  bool operator==(const Image&) const = default;
};

}  // namespace cay::layers
