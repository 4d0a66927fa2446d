// Bringing images to this machine: from a registry, from a folder, from an archive.
//
// Everything is verified on its way: blobs by their digest, layers by the digest of what is in
// them. An image is in the index once all of it is on disk. Takes seconds to minutes and all
// memory that archives want, so it is done by a process of its own; killed at any time it leaves
// what the next pull goes on with, and nothing else that removal would not find. Blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "layers/image_index.h"
#include "layers/layer_unpack.h"

namespace cay::engine {

struct PullProgress {
  enum class Stage : uint8_t { kFetching, kUnpacking };

  Stage stage = Stage::kFetching;
  size_t done = 0;     // blobs that were begun, layers that are there
  size_t total = 0;    // of layers; 0 while fetching, since nobody knows yet
  uint64_t bytes = 0;  // while fetching: that are there
};

struct PullOptions {
  std::string folder;  // of images: exists, absolute, ours alone (layers/pulled_images.h)
  layers::Owners owners = layers::Owners::kKept;
  std::string authFile = {};  // of docker's form; empty: where skopeo looks by itself
  layers::UnpackLimits limits = {};
  std::function<void(const PullProgress&)> progress = {};
};

// The image for Linux on this architecture. A name with a digest is that image or none.
// kUnreachable, kDenied and kNotFound as the registry has it.
Result<layers::StoredImage> pullImage(const PullOptions& options, std::string_view name);

// One layer of all that is in the folder; what is mounted below it is left out.
Result<layers::StoredImage> importFolder(const PullOptions& options, std::string_view name,
                                         const std::string& folder);
// One layer of an archive of a root, which may be compressed.
Result<layers::StoredImage> importTar(const PullOptions& options, std::string_view name,
                                      const std::string& file);

}  // namespace cay::engine
