#include "hub/identity_rows.h"

#include "base/text.h"
#include "hub/row_text.h"

namespace cay::hub {
namespace {

Result<std::vector<TokenRow>> readTokens(Database& database) {
  CAY_ASSIGN(Statement* const at,
             database.prepare("SELECT id, hash, hint, name, role, principal, namespaces, "
                              "created_ms, expires_ms, used_ms, revoked_ms FROM tokens ORDER BY "
                              "created_ms, id"));
  std::vector<TokenRow> rows;
  CAY_TRY(at->each([&] {
    auto namespaces = parseTexts(at->text(6), "namespaces");
    // One that cannot be read must not open anything, nor lock out all the others.
    if (!namespaces) namespaces.emplace();
    rows.push_back({.id = at->text(0),
                    .hash = at->text(1),
                    .hint = at->text(2),
                    .name = at->text(3),
                    .role = at->text(4),
                    .principal = at->text(5),
                    .namespaces = *std::move(namespaces),
                    .createdMs = at->number(7),
                    .expiresMs = at->number(8),
                    .usedMs = at->number(9),
                    .revokedMs = at->number(10)});
  }));
  return rows;
}

}  // namespace

Result<> insertPrincipal(Database& database, const PrincipalRow& row) {
  CAY_ASSIGN(Statement* const put,
             database.prepare("INSERT INTO principals(id, name, type, created_ms) "
                              "VALUES(?, ?, ?, ?)"));
  return put->bind(row.id).bind(row.name).bind(row.type).bind(row.createdMs).run();
}

Result<> insertToken(Database& database, const TokenRow& row) {
  CAY_ASSIGN(
      Statement* const put,
      database.prepare("INSERT INTO tokens(id, hash, hint, name, role, principal, namespaces, "
                       "created_ms, expires_ms, used_ms, revoked_ms) "
                       "VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  put->bind(row.id).bind(row.hash).bind(row.hint).bind(row.name).bind(row.role);
  put->bind(row.principal).bind(textsText(row.namespaces)).bind(row.createdMs);
  return put->bind(row.expiresMs).bind(row.usedMs).bind(row.revokedMs).run();
}

Result<> revokeToken(Database& database, const std::string& id, int64_t nowMs) {
  CAY_ASSIGN(Statement* const revoke,
             database.prepare("UPDATE tokens SET revoked_ms = iif(revoked_ms = 0, ?, revoked_ms) "
                              "WHERE id = ?"));
  CAY_TRY(revoke->bind(nowMs).bind(id).run());
  if (database.changed() == 0) return fail(Code::kNotFound, "no token " + quoted(id));
  return {};
}

Result<> markTokenUsed(Database& database, const std::string& id, int64_t nowMs) {
  CAY_ASSIGN(Statement* const mark,
             database.prepare("UPDATE tokens SET used_ms = max(used_ms, ?) WHERE id = ?"));
  return mark->bind(nowMs).bind(id).run();
}

Result<Identities> readIdentities(Database& database) {
  Identities all;
  CAY_ASSIGN(Statement* const at, database.prepare("SELECT id, name, type, created_ms FROM "
                                                   "principals ORDER BY created_ms, id"));
  CAY_TRY(at->each([&] {
    all.principals.push_back(
        {.id = at->text(0), .name = at->text(1), .type = at->text(2), .createdMs = at->number(3)});
  }));
  CAY_ASSIGN(all.tokens, readTokens(database));
  return all;
}

}  // namespace cay::hub
