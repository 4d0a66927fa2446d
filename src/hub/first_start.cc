#include "hub/first_start.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/text.h"
#include "hub/identity_rows.h"
#include "hub/private_folder.h"

namespace cay::hub {
namespace {

constexpr Role kRoles[] = {Role::kAdmin, Role::kUser, Role::kProxy};
constexpr size_t kMostNamespace = 96;
constexpr size_t kPrincipalIdBytes = 12;
constexpr size_t kMostPasswdBytes = 16 * 1024;

bool isLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

Result<> insertFirst(Database& database, const PrincipalRow& principal,
                     const std::vector<MadeToken>& tokens) {
  CAY_TRY(database.execute("BEGIN IMMEDIATE"));
  auto done = insertPrincipal(database, principal);
  for (const MadeToken& token : tokens) {
    if (done) done = insertToken(database, token.row);
  }
  if (done) done = database.execute("COMMIT");
  if (!done && database.inTransaction()) (void)database.execute("ROLLBACK");
  return done;
}

std::unexpected<Error> replaceIt(const Paths& paths, Role role, const std::string& what) {
  const std::string name(roleName(role));
  return fail(Code::kNotFound, what + ": make a new one with  cay token create " + name +
                                   " --role " + name + " --state " + paths.state + " --file " +
                                   paths.token(name));
}

}  // namespace

bool isNamespace(std::string_view name) {
  return !name.empty() && name.size() <= kMostNamespace && isLetterOrDigit(name.front()) &&
         std::ranges::all_of(
             name, [](char c) { return isLetterOrDigit(c) || c == '.' || c == '_' || c == '-'; });
}

std::string machineUser() {
  std::array<char, kMostPasswdBytes> buffer;
  passwd entry{};
  passwd* found = nullptr;
  (void)::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr && isNamespace(found->pw_name)) return found->pw_name;
  return "user" + std::to_string(::geteuid());
}

// The files come first: after a crash in between nobody is known, and both are made anew.
Result<> makeFirstTokens(Database& database, const Paths& paths, const std::string& user,
                         int64_t nowMs) {
  CAY_ASSIGN(const Identities known, readIdentities(database));
  if (!known.principals.empty()) return {};
  const PrincipalRow principal{
      .id = randomHex(kPrincipalIdBytes), .name = user, .type = "user", .createdMs = nowMs};
  CAY_ASSIGN(PrivateFolder folder, PrivateFolder::open(paths.tokens()));
  std::vector<MadeToken> tokens;
  for (const Role role : kRoles) {
    const std::string name(roleName(role));
    tokens.push_back(makeToken(
        {.name = name, .role = role, .principal = principal.id, .namespaces = {}}, nowMs));
    CAY_TRY(folder.write(name, tokens.back().secret + "\n", 0600, PrivateFolder::Lasts::kForever));
  }
  return insertFirst(database, principal, tokens);
}

Result<std::string> tokenInFile(Database& database, const Paths& paths, Role role, int64_t nowMs) {
  const std::string name(roleName(role));
  std::optional<std::string> text;
  {
    CAY_ASSIGN(const PrivateFolder folder, PrivateFolder::open(paths.tokens()));
    CAY_ASSIGN(text, folder.readSecret(name));
  }
  if (!text)
    return replaceIt(paths, role, "the token in " + quoted(paths.token(name)) + " is lost");
  const auto inFile = words(*text);
  std::string secret(inFile.size() == 1 ? inFile.front() : "");
  CAY_ASSIGN(const Identities known, readIdentities(database));
  Tokens tokens;
  tokens.replace(known);
  const auto caller = tokens.check(secret, nowMs);
  if (!caller || caller->role != role) {
    return replaceIt(paths, role,
                     "what is in " + quoted(paths.token(name)) + " is no good token of the role " +
                         quoted(name) + " (any more)");
  }
  return secret;
}

}  // namespace cay::hub
