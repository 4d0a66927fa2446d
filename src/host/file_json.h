// Files as JSON. Names that are not UTF-8: see files/path_text.h.
#pragma once

#include <string>

#include "files/entry.h"
#include "files/watcher.h"

namespace cay::host {

// {"name","path","type","size","mtime_ms","mode"}: exactly these keys, clients break on others.
std::string statJson(const files::StatResult& stat);
// {"entries":[…],"next":null or the last name}.
std::string listingJson(const files::Listing& listing);
// {"event","path"[,"from"]} and a newline.
void appendWatchEvent(std::string& out, const files::WatchEvent& event);

}  // namespace cay::host
