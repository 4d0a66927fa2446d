// People and their tokens in the hub's database. Blocking: the hub asks through
// Store, `cay token` directly, whether or not a hub runs.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "hub/rows.h"
#include "hub/sqlite.h"

namespace cay::hub {

struct Identities {
  std::vector<PrincipalRow> principals;
  std::vector<TokenRow> tokens;
};

// kConflict if there is one of that id or name, or of that id or secret.
Result<> insertPrincipal(Database& database, const PrincipalRow& row);
Result<> insertToken(Database& database, const TokenRow& row);
// For good. kNotFound if there is none.
Result<> revokeToken(Database& database, const std::string& id, int64_t nowMs);
Result<> markTokenUsed(Database& database, const std::string& id, int64_t nowMs);
// Oldest first.
Result<Identities> readIdentities(Database& database);

}  // namespace cay::hub
