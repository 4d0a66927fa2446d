// How a layer says that something of the layers below it is gone, in the language of overlayfs.
#pragma once

#include "base/error.h"
#include "sys/file.h"

namespace cay::layers {

// Nothing of that name is seen, whatever lies below. Also an ordinary user may make one.
Result<> makeWhiteout(int dir, const char* name);
bool isWhiteout(const sys::Stat& stat);

// On a folder, with the value "y": nothing in the folder of that name below is seen. The second one
// counts where an ordinary user mounts.
inline constexpr char kOpaque[] = "trusted.overlay.opaque";
inline constexpr char kUserOpaque[] = "user.overlay.opaque";

}  // namespace cay::layers
