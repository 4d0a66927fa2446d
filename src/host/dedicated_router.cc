#include "host/dedicated_router.h"

#include "base/clock.h"
#include "base/ids.h"
#include "host/route.h"

namespace cay::host {
namespace {

constexpr std::string_view kPrefix = "/v1";

}  // namespace

Result<> DedicatedRouter::admit(const net::RequestHead& head) const {
  return token_.empty() ? authenticate(head) : Result<>();
}

Result<> DedicatedRouter::authenticate(const net::RequestHead& head) const {
  if (!token_.empty()) {
    if (equalConstantTime(tokenOf(head), token_)) return {};
    return denied(head);
  }
  // A web page can make a browser send requests here, under any name that it has resolve to
  // 127.0.0.1.
  if (head.fields.get("Origin"))
    return fail(Code::kDenied, "requests of web pages are refused without a token");
  const auto host = head.fields.get("Host");
  if (!host || !isLoopbackHost(*host)) {
    return fail(Code::kDenied, "without a token only loopback host names are served");
  }
  return {};
}

net::Task<Result<>> DedicatedRouter::route(Call& call) {
  CAY_CO_TRY(authenticate(call.head));
  const sandbox::Activity::InUse inUse(activity_, monotonicMs);
  if (isBelow(call.path, kPrefix)) {
    call.path.remove_prefix(kPrefix.size());
  } else if (call.head.method == "OPTIONS") {
    co_return co_await answerOptions(call);
  } else {
    co_return noSuchRoute(call);
  }
  co_return co_await routeSandbox(call, access_);
}

}  // namespace cay::host
