// Images as tools write them to disk: an OCI image layout, whose blobs may lie elsewhere.
//
//   <folder>/index.json           which manifests there are, by platform
//   <blobs>/sha256/<hex>          manifests, configurations, layers
//
// Every document is verified against the digest by which it is named. All of it is from anybody:
// sizes and counts are bounded. Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "layers/image.h"

namespace cay::layers {

inline constexpr size_t kMaxDocument = size_t{4} << 20;

struct OciLayer {
  std::string digest;  // of the blob, which may be compressed
  uint64_t size = 0;   // of the blob
  std::string diffId;  // of what is in it
};

struct OciImage {
  std::string digest;  // of the manifest
  std::string configDigest;
  std::vector<OciLayer> layers;  // lowest first
  ImageConfig config;
};

// As images name it: "amd64", "arm64".
std::string_view machineArchitecture();

class OciLayout {
 public:
  OciLayout(std::string folder, std::string blobs)
      : folder_(std::move(folder)), blobs_(std::move(blobs)) {}

  // The image for Linux on this architecture. kInvalid with the platforms that there are if there
  // is none, and for everything that is not as it should be.
  [[nodiscard]] Result<OciImage> read(std::string_view architecture = machineArchitecture()) const;
  // A blob, positioned at its start; kInvalid if its content is another.
  [[nodiscard]] Result<Fd> openVerified(std::string_view digest, uint64_t size) const;
  [[nodiscard]] std::string blobPath(std::string_view digest) const;

 private:
  [[nodiscard]] Result<std::string> document(std::string_view digest, uint64_t size) const;

  const std::string folder_;
  const std::string blobs_;
};

}  // namespace cay::layers
