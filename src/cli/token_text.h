// Tokens as `cay token` shows them: everything but the token itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "hub/identity_rows.h"

namespace cay::cli {

// id, name, role, user, namespaces, hint, state (good, expired, revoked), created, expires, used,
// revoked: times as ISO 8601, null for never.
json::Object tokenJson(const hub::Identities& all, const hub::TokenRow& row, int64_t nowMs);
// For a table: ID, NAME, ROLE, USER, NAMESPACES, ENDS IN, STATE, EXPIRES, USED.
std::vector<std::string> tokenCells(const hub::Identities& all, const hub::TokenRow& row,
                                    int64_t nowMs);
// One line for each field of an object of texts, lists of texts and nulls.
std::string fieldLines(const json::Object& object);

}  // namespace cay::cli
