// Images: what a sandbox's root is made of below its own writable top.
#pragma once

#include <string>
#include <vector>

#include "isolation/plan.h"

namespace cay::layers {

inline constexpr char kHostImage[] = "host";

// What a pulled image says about the processes in it.
struct ImageConfig {
  std::vector<std::string> env;  // NAME=value
  std::string cwd = "/";
  std::string user;  // empty: root
  bool operator==(const ImageConfig&) const = default;
};

struct Image {
  std::string name;
  // Which of the prepared states of the image `host` this is, or the digest of a pulled image's
  // manifest; a sandbox keeps it for its life (ImageStore::removeUnused). Empty for a local root.
  std::string version;
  std::vector<isolation::Overlay> overlays;  // in mount order; none in restricted mode
  ImageConfig config = {};
  std::string alias = {};  // the name that was asked for, where it stands for `name`
  bool operator==(const Image&) const = default;
};

}  // namespace cay::layers
