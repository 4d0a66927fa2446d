// Which images were pulled or imported, and by which names they go.
//
//   <folder>/index.json   all of it; replaced as a whole
//   <folder>/lock         held by who replaces it
//   <folder>/uses/<hex>   locked (shared) by processes that use the image of that digest
//
// Safe from every thread and process at once: the hub and `cay image` share one. Blocking, for
// microseconds where nothing has changed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "layers/image.h"

namespace cay::layers {

struct StoredImage {
  std::string digest;               // of its manifest
  std::vector<std::string> layers;  // diff ids, lowest first
  std::vector<std::string> blobs;   // what it was made of, by digest: kept for the next pull
  ImageConfig config;
  uint64_t bytes = 0;  // of its layers as they came
  int64_t addedAtMs = 0;
  bool operator==(const StoredImage&) const = default;
};

class ImageIndex {
 public:
  // `folder` must exist, be absolute and belong to us alone.
  explicit ImageIndex(std::string folder) : folder_(std::move(folder)) {}

  struct Found {
    std::string name;   // in full
    std::string alias;  // in full: what was asked for, where that is an alias of `name`
    bool isHost = false;
    StoredImage image;  // if it is not the host
  };
  // Aliases come first; one is followed, not two. kNotFound if there is neither image nor alias,
  // kInvalid for what is no name.
  Result<Found> find(std::string_view name);
  // Also when it has no name any more.
  Result<StoredImage> findDigest(std::string_view digest);

  // The name stands for this image from now on.
  Result<> put(std::string_view name, const StoredImage& image);
  // An image's name, or an alias. The image stays until nobody uses it (image_gc.h).
  Result<> remove(std::string_view name);
  // `target`: `host`, or the name of an image, which need not be there yet.
  Result<> setAlias(std::string_view name, std::string_view target);

  struct Listing {
    std::vector<std::pair<std::string, StoredImage>> images;  // by name
    std::vector<std::pair<std::string, std::string>> aliases;
  };
  Result<Listing> list();

  // Nobody removes the image for as long as this is open. kNotFound if it is gone already.
  Result<Fd> hold(std::string_view digest);

  // Forgets the images that have no name, are not in `keep` and are held by nobody; gives those
  // that remain.
  Result<std::vector<StoredImage>> dropUnused(const std::set<std::string>& keep);

 private:
  struct Content {
    std::map<std::string, StoredImage> images;   // by digest
    std::map<std::string, std::string> names;    // to digests
    std::map<std::string, std::string> aliases;  // to names, or `host`
  };
  // Which file `content_` was read from.
  struct Stamp {
    uint64_t inode = 0;
    int64_t mtimeNs = 0;
    int64_t size = -1;
    bool operator==(const Stamp&) const = default;
  };

  static std::string textOf(const Content& content);
  static Result<Content> parse(std::string_view text);
  Result<> load();
  template <typename Change>
  Result<> update(const Change& change);
  Result<> save(const Content& content) const;
  [[nodiscard]] Result<Fd> useFile(std::string_view digest) const;
  [[nodiscard]] bool isHeld(std::string_view digest) const;

  const std::string folder_;
  std::mutex mutex_;
  Stamp stamp_;
  Content content_;
};

}  // namespace cay::layers
