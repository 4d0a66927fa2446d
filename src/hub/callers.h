// Who requests come from, kept up with what `cay token` writes while the hub runs.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "hub/api_error.h"
#include "hub/identity_rows.h"
#include "hub/rows.h"
#include "hub/store.h"
#include "hub/tokens.h"
#include "net/http.h"
#include "net/task.h"

namespace cay::hub {

// On the loop's thread.
class Callers {
 public:
  Callers(Store& store, Tokens& tokens) : store_(store), tokens_(tokens) {}

  void replace(const Identities& identities);

  // As in identity.h; a token that is not known yet is looked for in the store before it is
  // refused.
  net::Task<std::expected<Caller, ApiError>> callerOf(const net::RequestHead& head);
  // What somebody may do now, whose request was taken earlier. kDenied if there is nobody of this
  // id any more.
  [[nodiscard]] Result<Caller> rightsOf(std::string_view principalId) const;
  // Whose a namespace is.
  [[nodiscard]] PrincipalRow owner(std::string_view ns) const;

  // Looks for changes now.
  net::Task<> refresh();
  // Looks for changes again and again, as long as the loop runs: revoked tokens must end.
  net::Task<> follow();

 private:
  // Now and then, so that a token in use costs no write for each request.
  net::Task<> noteUse(std::string tokenId);

  Store& store_;
  Tokens& tokens_;
  std::vector<PrincipalRow> principals_;
  std::map<std::string, int64_t> notedMs_;  // by token
};

}  // namespace cay::hub
