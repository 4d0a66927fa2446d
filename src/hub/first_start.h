// The first tokens of a hub, in files that only its owner can read: <state>/tokens/<role>. They are
// what `cay env` hands out. Blocking.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hub/paths.h"
#include "hub/sqlite.h"
#include "hub/tokens.h"

namespace cay::hub {

// What the user of this process is called, as far as that can be a namespace.
std::string machineUser();
// Letters, digits, '.', '_' and '-', of which the first is a letter or digit; at most 96.
bool isNamespace(std::string_view name);

// Makes somebody of that name, who has a token of each role, if the database knows nobody yet.
Result<> makeFirstTokens(Database& database, const Paths& paths, const std::string& user,
                         int64_t nowMs);

// What the file of that role holds. kNotFound, with what to do, if it is missing or if that token
// has been revoked, has expired or is another one.
Result<std::string> tokenInFile(Database& database, const Paths& paths, Role role, int64_t nowMs);

}  // namespace cay::hub
