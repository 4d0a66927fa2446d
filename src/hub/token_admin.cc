#include "hub/token_admin.h"

#include <algorithm>

#include "base/ids.h"
#include "base/text.h"
#include "hub/first_start.h"

namespace cay::hub {
namespace {

constexpr size_t kMostName = 96;
constexpr size_t kPrincipalIdBytes = 12;

Result<> check(const TokenRequest& request) {
  const auto isPlain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (request.name.empty() || request.name.size() > kMostName ||
      !std::ranges::all_of(request.name, isPlain)) {
    return fail(
        Code::kInvalid,
        quoted(request.name) + " is not a name for a token: 1 to 96 letters, digits and signs");
  }
  std::vector<std::string> names = request.namespaces;
  if (!request.user.empty()) names.push_back(request.user);
  for (const std::string& name : names) {
    if (isNamespace(name)) continue;
    return fail(Code::kInvalid, quoted(name) +
                                    " is not a namespace: letters, digits, '.', '_' and "
                                    "'-', of which the first is a letter or digit");
  }
  return {};
}

// Their id.
Result<std::string> ownerOf(Database& database, const TokenRequest& request, int64_t nowMs) {
  CAY_ASSIGN(const Identities known, readIdentities(database));
  if (known.principals.empty()) {
    return fail(Code::kConflict, "no hub has run here yet: the first start makes the first tokens");
  }
  if (request.user.empty()) return known.principals.front().id;
  const auto found = std::ranges::find(known.principals, request.user, &PrincipalRow::name);
  if (found != known.principals.end()) return found->id;
  const PrincipalRow somebody{
      .id = randomHex(kPrincipalIdBytes), .name = request.user, .type = "user", .createdMs = nowMs};
  CAY_TRY(insertPrincipal(database, somebody));
  return somebody.id;
}

Result<MadeToken> insertNew(Database& database, const TokenRequest& request, int64_t nowMs) {
  CAY_ASSIGN(std::string owner, ownerOf(database, request, nowMs));
  MadeToken made = makeToken({.name = request.name,
                              .role = request.role,
                              .principal = std::move(owner),
                              .namespaces = request.namespaces,
                              .expiresMs = request.expiresMs},
                             nowMs);
  CAY_TRY(insertToken(database, made.row));
  CAY_TRY(database.execute("COMMIT"));
  return made;
}

}  // namespace

Result<MadeToken> createToken(Database& database, const TokenRequest& request, int64_t nowMs) {
  CAY_TRY(check(request));
  CAY_TRY(database.execute("BEGIN IMMEDIATE"));
  auto made = insertNew(database, request, nowMs);
  if (!made && database.inTransaction()) (void)database.execute("ROLLBACK");
  return made;
}

Result<TokenRow> findToken(const Identities& identities, std::string_view which) {
  const auto byId = std::ranges::find(identities.tokens, which, &TokenRow::id);
  if (byId != identities.tokens.end()) return *byId;
  std::vector<TokenRow> named;
  std::ranges::copy_if(identities.tokens, std::back_inserter(named),
                       [&](const TokenRow& row) { return row.name == which; });
  const auto isLiving = [](const TokenRow& row) { return row.revokedMs == 0; };
  if (std::ranges::any_of(named, isLiving)) std::erase_if(named, std::not_fn(isLiving));
  if (named.empty()) return fail(Code::kNotFound, "no token " + quoted(which));
  if (named.size() == 1) return named.front();
  std::string ids;
  for (const TokenRow& row : named) ids.append(ids.empty() ? "" : ", ").append(row.id);
  return fail(Code::kConflict,
              "several tokens are called " + quoted(which) + ": name one by its id (" + ids + ")");
}

}  // namespace cay::hub
