// Masks: what hides the files of a lower layer that not everybody may read.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace cay::layers {

// What not every user may read below the directory `tree`, by its modes: files, and folders with
// all they contain. Devices, sockets and FIFOs count too, and what cannot be looked at. Paths below
// `tree`, in order. Looks at everything, so it takes about a second for 200 000 files that are in
// the kernel's memory. Blocking.
Result<std::vector<std::string>> findClosed(int tree);

// Fills the empty directory `mask` so that, as the layer above `tree`, it hides those paths.
Result<> buildMask(int tree, const std::vector<std::string>& closed, int mask);

}  // namespace cay::layers
