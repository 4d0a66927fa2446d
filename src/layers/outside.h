// Layers are seen by sandboxes, so nothing of the state folder may be in one.
#pragma once

#include <string>

#include "base/error.h"

namespace cay::layers {

// kConflict if `folder` is the directory `layer`, or somewhere below it. `layerPath` is for the
// error.
Result<> requireOutside(const std::string& folder, int layer, const std::string& layerPath);

}  // namespace cay::layers
