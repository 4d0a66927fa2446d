// Local roots: folders of the operator that hold a whole root file system each.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "layers/image.h"

namespace cay::layers {

struct LocalRoots {
  const std::string& folder;  // one root per entry; empty: there are none
  const std::string& state;   // a folder that must not be inside a root: sandboxes would see it
  isolation::Mode mode;
};

// Names are of letters, digits, '.', '_' and '-'. kInvalid if there is no such root, or if it has
// no bin/sh; the error names it and those that there are. Blocking.
Result<Image> localRoot(const LocalRoots& roots, std::string_view name);

}  // namespace cay::layers
