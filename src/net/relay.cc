#include "net/relay.h"

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <memory>
#include <string_view>
#include <utility>

#include "net/wire.h"

namespace cay::net {
namespace {

using namespace boost::asio::experimental::awaitable_operators;
using boost::system::error_code;

constexpr size_t kRelayBytes = size_t{16} * 1024;

void reset(Wire& wire) {
  wire.resetOnClose();
  error_code ignored;
  wire.socket().close(ignored);
}

// Copies until `from` ends, which it passes on, or until one of them fails, which resets both.
Task<> copy(Wire& from, Wire& to, int64_t& lastMs) {
  const auto memory = std::make_unique_for_overwrite<char[]>(kRelayBytes);
  const std::string_view received = from.input().view();
  ssize_t count = static_cast<ssize_t>(received.size());
  bool failed = !received.empty() && co_await to.send({received}) != 0;
  while (!failed) {
    count = co_await from.receive({memory.get(), kRelayBytes});
    if (count <= 0) break;
    lastMs = monotonicMs();
    failed = co_await to.send({std::string_view(memory.get(), static_cast<size_t>(count))}) != 0;
  }
  if (!failed && count == 0) {
    error_code ignored;
    to.socket().shutdown(Socket::shutdown_send, ignored);
  } else {
    reset(from);
    reset(to);
  }
}

Task<> untilIdle(const int64_t& lastMs, Millis limit) {
  for (;;) {
    const Millis left(lastMs + limit.count() - monotonicMs());
    if (left <= Millis(0)) co_return;
    co_await sleepFor(left);
  }
}

}  // namespace

Task<> relay(Stream& a, Stream& b, Millis idleLimit) {
  Wire first(std::move(a));
  Wire second(std::move(b));
  int64_t lastMs = monotonicMs();
  if (idleLimit == Event::kForever) {
    co_await (copy(first, second, lastMs) && copy(second, first, lastMs));
  } else {
    co_await ((copy(first, second, lastMs) && copy(second, first, lastMs)) ||
              untilIdle(lastMs, idleLimit));
  }
}

}  // namespace cay::net
