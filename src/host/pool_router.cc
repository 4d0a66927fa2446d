#include "host/pool_router.h"

#include "base/clock.h"
#include "base/ids.h"
#include "base/text.h"
#include "host/pooled_access.h"
#include "host/route.h"

namespace cay::host {
namespace {

constexpr std::string_view kSandboxes = "/v1/sandboxes";

bool isRead(const net::RequestHead& head) {
  return head.method == "GET" || head.method == "HEAD";
}

bool isUpload(const Call& call) {
  return call.head.method == "PUT" && isBelow(call.path, "/files");
}

}  // namespace

PoolRouter::Caller PoolRouter::callerOf(const net::RequestHead& head,
                                        std::string_view ownToken) const {
  const std::string_view sent = tokenOf(head);
  const bool isHost = equalConstantTime(sent, token_);
  const bool isOwner = !ownToken.empty() && equalConstantTime(sent, ownToken);
  return isOwner ? Caller::kOwner : isHost ? Caller::kHost : Caller::kNobody;
}

net::Task<Result<>> PoolRouter::route(Call& call) {
  if (!isBelow(call.path, kSandboxes)) co_return co_await routeManagement(call);
  call.path.remove_prefix(kSandboxes.size());
  if (call.path.starts_with('/')) call.path.remove_prefix(1);
  if (call.path.empty()) co_return co_await routeManagement(call);
  const std::string_view id = call.path.substr(0, call.path.find('/'));
  call.path.remove_prefix(id.size());
  if (call.path == "/") call.path = {};
  co_return co_await routeOne(call, id);
}

net::Task<Result<>> PoolRouter::routeManagement(Call& call) {
  if (callerOf(call.head, {}) != Caller::kHost) co_return denied(call.head);
  const sandbox::Activity::InUse inUse(activity_, monotonicMs);
  if (call.head.method == "OPTIONS") co_return co_await answerOptions(call);
  if (!call.path.empty()) co_return noSuchRoute(call);
  co_return co_await serveSandboxes(call, services_);
}

net::Task<Result<>> PoolRouter::routeOne(Call& call, std::string_view id) {
  const sandbox::PooledPtr pooled = services_.registry.find(id);
  const auto gone = pooled ? std::nullopt : services_.registry.findGone(id);
  const std::string ownToken = pooled ? pooled->record.token : gone ? gone->token : "";
  const Caller caller = callerOf(call.head, ownToken);
  const bool isToken = call.path == "/token";
  const bool isInfo = call.path.empty() && isRead(call.head);
  const bool hostMay = isToken || isInfo || compat_;
  if (caller == Caller::kNobody || (caller == Caller::kHost && !hostMay) ||
      (caller == Caller::kOwner && isToken)) {
    co_return denied(call.head);
  }
  const sandbox::Activity::InUse inUse(activity_, monotonicMs);
  if (gone) {
    co_return co_await answerForGone(call, id, gone->death,
                                     call.path.empty() && call.head.method == "DELETE");
  }
  if (!pooled) {
    // Below a sandbox 404 would mean that a file is missing.
    co_return fail(isToken || isInfo ? Code::kNotFound : Code::kGone,
                   "there is no sandbox " + quoted(id) + ", or no longer");
  }
  if (isToken) co_return co_await tellToken(call, *pooled);
  if (isInfo) co_return co_await showSandbox(call, services_, pooled);
  co_return co_await routeAlive(call, pooled);
}

net::Task<Result<>> PoolRouter::routeAlive(Call& call, sandbox::PooledPtr pooled) {
  if (call.path.empty()) {
    if (call.head.method == "OPTIONS") co_return co_await answerOptions(call);
    CAY_CO_TRY(allow(call, {"GET", "HEAD", "DELETE"}));
    co_return co_await deleteSandbox(call, services_, std::move(pooled));
  }
  // Nothing has been waited for since the sandbox was found: from here on it is not idle.
  const sandbox::Activity::InUse inUse(pooled->activity, monotonicMs);
  if (isUpload(call)) CAY_CO_TRY(services_.reserve.check(monotonicMs()));
  PooledAccess access(services_.registry, pooled, services_.workers, services_.bursts);
  co_return co_await routeSandbox(call, access);
}

}  // namespace cay::host
