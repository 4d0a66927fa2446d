// Images: what a sandbox's root is made of below its own writable top.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "isolation/plan.h"

namespace cay::layers {

struct Image {
  std::string name;
  std::vector<isolation::Overlay> overlays;  // in mount order
};

}  // namespace cay::layers
