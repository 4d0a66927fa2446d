#include "net/stream.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "net/await.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

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

}  // namespace cay::net
