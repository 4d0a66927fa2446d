#include "net/event_stream.h"

#include <utility>

namespace cay::net {
namespace {

constexpr size_t kMany = size_t{64} * 1024;

}  // namespace

Task<Result<>> EventStream::begin(ResponseHead head) {
  head.fields.add("Content-Type", "text/event-stream");
  head.fields.add("Cache-Control", "no-cache");
  head.fields.add("X-Accel-Buffering", "no");
  CAY_CO_TRY(response_.begin(std::move(head)));
  sentMs_ = monotonicMs();
  co_return co_await response_.write({});
}

Task<Result<>> EventStream::event(std::string_view type, std::string_view data) {
  if (!type.empty()) waiting_.append("event: ").append(type).append("\n");
  waiting_.append("data: ").append(data).append("\n\n");
  if (waiting_.size() < kMany) co_return Result<>();
  co_return co_await flush();
}

Task<Result<>> EventStream::flush() {
  const int64_t now = monotonicMs();
  if (waiting_.empty()) {
    if (now - sentMs_ < keepAlive_.count()) co_return Result<>();
    waiting_ = ": keep-alive\n\n";
  }
  sentMs_ = now;
  const std::string piece = std::exchange(waiting_, {});
  co_return co_await response_.write(piece);
}

Task<Result<>> EventStream::end() {
  const std::string piece = std::exchange(waiting_, {});
  co_return co_await response_.finish(piece);
}

}  // namespace cay::net
