// Copying what everybody may read.
#pragma once

#include <string>

#include "base/error.h"

namespace cay::layers {

// Fills the empty directory `to` with the files, links and folders of `from` that every user of the
// machine may read, by their modes all the way down. The copies are ours, with the same modes.
// Links are copied as they are. Left out: devices, sockets and FIFOs, what is mounted there, what
// vanishes meanwhile and what `leaveOut` wants, which gets the path below `from`. Blocking.
Result<> copyPublic(int from, int to, bool (*leaveOut)(const std::string& path));

// The same for one file, which may be behind a link, into a new file `name` of `to`. False if it is
// left out.
Result<bool> copyPublicFile(int fromDir, const char* from, int to, const char* name);

}  // namespace cay::layers
