#include "host/inside.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "net/await.h"

namespace cay::host {

namespace asio = boost::asio;
using isolation::Mode;

Result<std::shared_ptr<const files::Place>> placeInside(Fd root, Mode mode, uint32_t firstUid,
                                                        const std::string& home,
                                                        files::Paths paths) {
  if (mode != Mode::kFull) {
    const files::OwnIds ids{.uid = ::geteuid(), .gid = ::getegid(), .count = 1};
    return files::Place::create(std::move(root), home, std::nullopt, paths, ids);
  }
  const sys::Identity identity{.uid = firstUid, .gid = firstUid, .effective = true};
  const files::OwnIds ids{.uid = firstUid, .gid = firstUid, .count = isolation::kIdsPerSandbox};
  return files::Place::create(std::move(root), home, identity, paths, ids);
}

net::Stream streamOver(const net::Executor& executor, int family, Fd socket) {
  net::Socket adopted(executor);
  adopted.assign(asio::generic::stream_protocol(family, 0), socket.release());
  return {std::move(adopted), {}};
}

net::Task<Result<net::Stream>> InsideDialer::dial(uint16_t port) {
  const asio::ip::address_v4 loopback = asio::ip::address_v4::loopback();
  // Each on a socket of its own: one that was refused stays bound to the family it tried.
  for (const bool v6 : {false, true}) {
    CAY_CO_ASSIGN(Fd socket, co_await sandbox_.socket());
    int family = AF_INET;
    socklen_t length = sizeof family;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &family, &length);
    if (v6 && family != AF_INET6) break;
    asio::ip::address address = loopback;
    if (v6) {
      address = asio::ip::address_v6::loopback();
    } else if (family == AF_INET6) {
      address = asio::ip::make_address_v6(asio::ip::v4_mapped, loopback);
    }
    net::Stream stream = streamOver(co_await asio::this_coro::executor, family, std::move(socket));
    const auto [refused] =
        co_await stream.socket.async_connect(asio::ip::tcp::endpoint(address, port), net::kAwait);
    if (refused) continue;
    boost::system::error_code ignored;
    stream.socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    co_return stream;
  }
  co_return fail(Code::kUnreachable, "nothing listens on port " + std::to_string(port));
}

}  // namespace cay::host
