#include "hub/tokens.h"

#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/sha256.h"

namespace cay::hub {
namespace {

constexpr size_t kSecretBytes = 24;
constexpr size_t kHintLetters = 4;
constexpr std::string_view kRoles[] = {"admin", "user", "proxy"};

}  // namespace

std::string_view roleName(Role role) {
  return kRoles[static_cast<size_t>(role)];
}

std::optional<Role> roleOf(std::string_view name) {
  const auto* const found = std::ranges::find(kRoles, name);
  if (found == std::end(kRoles)) return std::nullopt;
  return static_cast<Role>(found - std::begin(kRoles));
}

bool Caller::may(std::string_view ns) const {
  if (role == Role::kProxy) return false;
  return role == Role::kAdmin || ns == name ||
         std::ranges::find(namespaces, ns) != namespaces.end();
}

MadeToken makeToken(TokenWish wish, int64_t nowMs) {
  std::string secret = std::string(kTokenPrefix) + randomHex(kSecretBytes);
  TokenRow row{.id = newId("t"),
               .hash = sha256Hex(secret),
               .hint = secret.substr(secret.size() - kHintLetters),
               .name = std::move(wish.name),
               .role = std::string(roleName(wish.role)),
               .principal = std::move(wish.principal),
               .namespaces = std::move(wish.namespaces),
               .createdMs = nowMs,
               .expiresMs = wish.expiresMs};
  return {std::move(secret), std::move(row)};
}

void Tokens::replace(const Identities& identities) {
  byHash_.clear();
  for (const TokenRow& row : identities.tokens) {
    const auto role = roleOf(row.role);
    const auto principal =
        std::ranges::find(identities.principals, row.principal, &PrincipalRow::id);
    if (!role || principal == identities.principals.end() || row.revokedMs != 0) continue;
    byHash_.emplace(row.hash, Entry{.caller = {.tokenId = row.id,
                                               .principalId = principal->id,
                                               .name = principal->name,
                                               .role = *role,
                                               .namespaces = row.namespaces},
                                    .expiresMs = row.expiresMs});
  }
}

Result<Caller> Tokens::check(std::string_view secret, int64_t nowMs) const {
  const auto found = byHash_.find(sha256Hex(secret));
  if (found == byHash_.end() || !found->second.isGood(nowMs)) {
    return fail(Code::kDenied, "the token is unknown, revoked or expired");
  }
  return found->second.caller;
}

Caller Tokens::rightsOf(const PrincipalRow& principal, int64_t nowMs) const {
  Caller out{.tokenId = {},
             .principalId = principal.id,
             .name = principal.name,
             .role = Role::kUser,
             .namespaces = {}};
  for (const auto& [hash, entry] : byHash_) {
    const Caller& caller = entry.caller;
    if (caller.principalId != principal.id || caller.role == Role::kProxy) continue;
    if (!entry.isGood(nowMs)) continue;
    if (caller.role == Role::kAdmin) out.role = Role::kAdmin;
    out.namespaces.insert(out.namespaces.end(), caller.namespaces.begin(), caller.namespaces.end());
  }
  return out;
}

}  // namespace cay::hub
