#include "hub/stream_guard.h"

namespace cay::hub {

net::Task<Result<>> StreamGuard::check() {
  CAY_CO_TRY(co_await events_.flush());
  if (watch_.gone()) co_return fail(Code::kClosed, "the client has gone");
  co_return Result<>();
}

net::Task<Result<>> StreamGuard::pause() {
  CAY_CO_TRY(co_await check());
  (void)co_await job_.wait(kSlice);
  co_return Result<>();
}

}  // namespace cay::hub
