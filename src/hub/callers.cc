#include "hub/callers.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "hub/identity.h"
#include "hub/job_info.h"
#include "net/event.h"

namespace cay::hub {
namespace {

constexpr Millis kLookEvery{500};
constexpr int64_t kNoteEveryMs = 60'000;
constexpr int kUnauthorized = 401;

}  // namespace

void Callers::replace(const Identities& identities) {
  tokens_.replace(identities);
  principals_ = identities.principals;
}

net::Task<std::expected<Caller, ApiError>> Callers::callerOf(const net::RequestHead& head) {
  auto caller = hub::callerOf(head, tokens_, wallMs());
  if (!caller && caller.error().status == kUnauthorized &&
      head.fields.count("Authorization") == 1) {
    co_await refresh();
    caller = hub::callerOf(head, tokens_, wallMs());
  }
  if (caller) co_await noteUse(caller->tokenId);
  co_return caller;
}

Result<Caller> Callers::rightsOf(std::string_view principalId) const {
  const auto found = std::ranges::find(principals_, principalId, &PrincipalRow::id);
  if (found == principals_.end()) return fail(Code::kDenied, "whoever asked for it is not known");
  return tokens_.rightsOf(*found, wallMs());
}

PrincipalRow Callers::owner(std::string_view ns) const {
  return ownerOf(ns, principals_);
}

net::Task<> Callers::refresh() {
  const auto changed = co_await store_.foreignChange();
  if (!changed) {
    log(Level::kWarn, "tokens could not be read again", {{"error", changed.error().message}});
  } else if (*changed) {
    replace(**changed);
  }
}

net::Task<> Callers::follow() {
  while (true) {
    co_await net::sleepFor(kLookEvery);
    co_await refresh();
  }
}

net::Task<> Callers::noteUse(std::string tokenId) {
  const int64_t now = wallMs();
  int64_t& noted = notedMs_[tokenId];
  if (now - noted < kNoteEveryMs) co_return;
  noted = now;
  // A full disk must not keep anybody out.
  (void)co_await store_.tokenUsed(std::move(tokenId), now);
}

}  // namespace cay::hub
