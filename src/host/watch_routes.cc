#include <fcntl.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

#include "base/clock.h"
#include "base/fd.h"
#include "files/watcher.h"
#include "host/file_json.h"
#include "host/file_transfer.h"
#include "host/route.h"
#include "net/await.h"
#include "net/event.h"

namespace cay::host {
namespace {

using Descriptor = boost::asio::posix::basic_stream_descriptor<net::Executor>;
using WatcherPtr = std::shared_ptr<files::Watcher>;

constexpr Millis kPingAfter{15'000};
constexpr Millis kOtherHalf{20};  // how long the second half of a move may take

std::string linesOf(const std::vector<files::WatchEvent>& events) {
  std::string lines;
  for (const files::WatchEvent& event : events) appendWatchEvent(lines, event);
  return lines;
}

// What happened meanwhile as lines; a ping after a long silence.
Result<std::string> takeEvents(files::Watcher& watcher, bool readable) {
  if (readable) {
    CAY_ASSIGN(const auto events, watcher.drain());
    return linesOf(events);
  }
  return watcher.hasHalfMove() ? linesOf(watcher.settle()) : "{\"event\":\"ping\"}\n";
}

net::Task<Result<>> streamEvents(Call& call, FileService& service, WatcherPtr watcher) {
  using namespace boost::asio::experimental::awaitable_operators;
  // A descriptor of its own for the loop: the watcher may still be at work on its own when this
  // ends.
  Descriptor descriptor(co_await boost::asio::this_coro::executor);
  const int own = ::fcntl(watcher->fd(), F_DUPFD_CLOEXEC, 3);
  if (own == -1) co_return failSys("dup", errno);
  descriptor.assign(own);
  for (;;) {
    const Millis patience = watcher->hasHalfMove() ? kOtherHalf : kPingAfter;
    const auto woken = co_await (descriptor.async_wait(Descriptor::wait_read, net::kAwait) ||
                                 net::sleepFor(patience) || call.response.disconnected());
    if (woken.index() == 2) co_return fail(Code::kClosed, "the client has gone");
    auto work = [watcher, readable = woken.index() == 0] { return takeEvents(*watcher, readable); };
    CAY_CO_ASSIGN(const std::string lines, co_await service.workers.run(std::move(work)));
    if (watcher->ended()) co_return co_await call.response.finish(lines);
    if (!lines.empty()) CAY_CO_TRY(co_await call.response.write(lines));
  }
}

}  // namespace

net::Task<Result<>> watchFiles(Call& call, FileService& service) {
  CAY_CO_TRY(allow(call, {"GET"}));
  CAY_CO_ASSIGN(std::string path, pathOf(call));
  CAY_CO_ASSIGN(const bool deep, call.query.getFlag("recursive"));
  const auto recursive = deep ? files::Recursive::kYes : files::Recursive::kNo;
  auto open = [place = service.place, path = std::move(path), recursive] {
    return files::Watcher::open(place, path, recursive);
  };
  CAY_CO_ASSIGN(WatcherPtr watcher, co_await service.workers.run(std::move(open)));
  net::ResponseHead head;
  head.fields.add("Content-Type", "application/x-ndjson");
  head.fields.add("X-Accel-Buffering", "no");
  CAY_CO_TRY(call.response.begin(std::move(head)));
  CAY_CO_TRY(co_await call.response.write("{\"event\":\"ready\"}\n"));
  co_return co_await streamEvents(call, service, std::move(watcher));
}

}  // namespace cay::host
