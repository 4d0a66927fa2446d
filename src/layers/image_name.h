// Names of images, as docker reads them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace cay::layers {

struct ImageName {
  std::string registry;    // "docker.io", "localhost:5000"
  std::string repository;  // "library/python"
  std::string tag;         // empty if there is a digest, which says it all
  std::string digest;      // "sha256:…", or empty

  // The full form: "docker.io/library/python:3.12".
  [[nodiscard]] std::string text() const;
};

// "python" is docker.io/library/python:latest. kInvalid for what is no name.
Result<ImageName> parseImageName(std::string_view text);

}  // namespace cay::layers
