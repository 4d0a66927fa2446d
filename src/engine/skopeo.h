// Fetching an image from a registry, by skopeo.
//
// The blobs lie in a folder that all images share: one that is there is not fetched again, so a
// pull that was broken off goes on with the next blob. Blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "layers/image_name.h"

namespace cay::engine {

struct Fetch {
  layers::ImageName name;
  std::string layout;      // a folder for the image's layout (layers/oci_layout.h)
  std::string blobs;       // the folder of all blobs
  std::string authFile;    // empty: where skopeo looks by itself
  uint64_t blobBytes = 0;  // the largest blob that is accepted
  // Told every half second, and at each new blob: how many have been begun, how much is there.
  std::function<void(size_t blobs, uint64_t bytes)> progress;
};

// Gives the digests of all that it fetched or found. kUnreachable if the registry could not be
// reached, kDenied if it wants (other) credentials, kNotFound if it does not have the image.
Result<std::vector<std::string>> fetchImage(const Fetch& fetch);

// What a line of skopeo's output says. Pure.
struct SkopeoLine {
  std::string digest;   // of a blob that it has begun with
  std::string failure;  // why it gives up
};
SkopeoLine readSkopeoLine(std::string_view line);
Code codeOfFailure(std::string_view failure);
// A registry on this machine need not have a certificate.
bool isLoopback(std::string_view registry);

}  // namespace cay::engine
