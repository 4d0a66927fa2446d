#include "net/stream.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <memory>
#include <utility>

#include "net/await.h"
#include "net/wire.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr size_t kRelayBytes = size_t{16} * 1024;

void reset(Wire& wire) {
  wire.resetOnClose();
  error_code ignored;
  wire.socket().close(ignored);
}

// Copies until `from` ends, which it passes on, or until one of them fails, which resets both.
Task<> copy(Wire& from, Wire& to) {
  const auto memory = std::make_unique_for_overwrite<char[]>(kRelayBytes);
  const std::string_view received = from.input().view();
  ssize_t count = static_cast<ssize_t>(received.size());
  bool failed = !received.empty() && co_await to.send({received}) != 0;
  while (!failed) {
    count = co_await from.receive({memory.get(), kRelayBytes});
    if (count <= 0) break;
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

}  // namespace

Task<Result<Stream>> dialLoopback(uint16_t port) {
  return dialLoopback(port, [](int family) -> Task<Result<Fd>> {
    Fd socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) co_return failSys("socket", errno);
    co_return socket;
  });
}

Task<Result<Stream>> dialLoopback(uint16_t port, SocketSource sockets) {
  const Executor executor = co_await asio::this_coro::executor;
  const std::array<asio::ip::address, 2> addresses = {asio::ip::address_v4::loopback(),
                                                      asio::ip::address_v6::loopback()};
  for (const asio::ip::address& address : addresses) {
    const tcp::endpoint endpoint(address, port);
    auto made = co_await sockets(endpoint.protocol().family());
    if (!made && made.error().code == Code::kGone) co_return std::unexpected(made.error());
    if (!made) continue;
    Socket socket(executor);
    error_code error;
    socket.assign(endpoint.protocol(), made->get(), error);
    if (error) continue;
    (void)made->release();
    const auto [refused] = co_await socket.async_connect(endpoint, kAwait);
    if (refused) continue;
    socket.set_option(tcp::no_delay(true), error);
    co_return Stream{std::move(socket), {}};
  }
  co_return fail(Code::kUnreachable, "nothing listens on port " + std::to_string(port));
}

Task<> relay(Stream& a, Stream& b) {
  using namespace asio::experimental::awaitable_operators;
  Wire first(std::move(a));
  Wire second(std::move(b));
  co_await (copy(first, second) && copy(second, first));
}

}  // namespace cay::net
