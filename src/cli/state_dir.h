// Which folder a verb is about.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "hub/paths.h"

namespace cay::cli {

// What the environment says of a variable; empty if nothing.
using Variables = std::function<std::string(const char* name)>;
std::string variable(const char* name);

// The folder as it was given, or the default of the user; absolute and without
// links. kInvalid if neither tells.
Result<hub::Paths> statePaths(const std::string& given, bool isRoot, const Variables& variables);

// Makes it if it is missing. kConflict if it belongs to somebody else.
Result<hub::Paths> makeState(const std::string& given);
// One in which a hub has run: kNotFound, with what to do, if none has.
Result<hub::Paths> openHub(const std::string& given);

}  // namespace cay::cli
