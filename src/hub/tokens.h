// Tokens: who holds one is somebody. Only their SHA-256 is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hub/identity_rows.h"
#include "hub/rows.h"

namespace cay::hub {

enum class Role : uint8_t {
  kAdmin,  // every namespace
  kUser,   // its own, and those that it was given
  kProxy,  // CONNECT and nothing else
};

std::string_view roleName(Role role);
std::optional<Role> roleOf(std::string_view name);

// Somebody whose token was good.
struct Caller {
  std::string tokenId;
  std::string principalId;
  std::string name;  // also the name of its own namespace
  Role role = Role::kProxy;
  std::vector<std::string> namespaces;  // besides its own

  [[nodiscard]] bool may(std::string_view ns) const;
};

// What every token begins with: also how one is told from somebody else's.
inline constexpr std::string_view kTokenPrefix = "hf_cay";

struct TokenWish {
  std::string name;
  Role role = Role::kUser;
  std::string principal;
  std::vector<std::string> namespaces;
  int64_t expiresMs = 0;  // 0: never
};

struct MadeToken {
  std::string secret;  // shown once, kept nowhere
  TokenRow row;
};
MadeToken makeToken(TokenWish wish, int64_t nowMs);

class Tokens {
 public:
  // Rows that make no sense (an unknown role, nobody's token) open nothing.
  void replace(const Identities& identities);
  // kDenied for an unknown, revoked or expired one, in the same words for all three. Found by its
  // hash, so the time it takes tells nothing about those that there are.
  [[nodiscard]] Result<Caller> check(std::string_view secret, int64_t nowMs) const;
  // What somebody may do with all good tokens together; with none, use the own namespace.
  [[nodiscard]] Caller rightsOf(const PrincipalRow& principal, int64_t nowMs) const;

 private:
  struct Entry {
    Caller caller;
    int64_t expiresMs = 0;

    [[nodiscard]] bool isGood(int64_t nowMs) const { return expiresMs == 0 || nowMs < expiresMs; }
  };

  std::map<std::string, Entry, std::less<>> byHash_;
};

}  // namespace cay::hub
