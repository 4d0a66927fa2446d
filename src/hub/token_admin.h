// What an operator does with tokens in the hub's database. Blocking; safe beside a running hub and
// beside others who do the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hub/identity_rows.h"
#include "hub/sqlite.h"
#include "hub/tokens.h"

namespace cay::hub {

struct TokenRequest {
  std::string name;
  Role role = Role::kUser;
  std::string user;  // empty: the first that the hub knew
  std::vector<std::string> namespaces;
  int64_t expiresMs = 0;  // 0: never
};

// Somebody new is made known with it. kInvalid for a name that cannot be one.
Result<MadeToken> createToken(Database& database, const TokenRequest& request, int64_t nowMs);

// By its id, or by its name, where one that is good goes before those that were revoked. kNotFound;
// kConflict with the ids if several have the name.
Result<TokenRow> findToken(const Identities& identities, std::string_view which);

}  // namespace cay::hub
