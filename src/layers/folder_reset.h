// Making a used folder of a sandbox a new one again.
#pragma once

#include "base/error.h"
#include "layers/spare_folders.h"

namespace cay::layers {

// Removes all that is not part of the shape, empties its files, and puts new folders in the place
// of those that belonged to the sandbox: whoever still has an old one open, or mounted, has nothing
// to do with what happens in the new one, and no mode, attribute or time of it remains. All of it
// is ours afterwards.
Result<> resetFolder(const Shape& shape, int folder);

// Makes a part in the folder, for ourselves.
Result<> makePart(int folder, const Part& part);

}  // namespace cay::layers
