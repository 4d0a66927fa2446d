#include "hub/tls_stream.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "hub/tls_pump.h"
#include "net/event.h"
#include "sys/socket.h"

namespace cay::hub {
namespace {

using net::Socket;
using net::Stream;
using Why = TlsFailure::Why;

// Small answers must not wait for the acknowledgement of what went before them.
void sendAtOnce(Socket& socket) {
  boost::system::error_code notTcp;
  socket.set_option(boost::asio::ip::tcp::no_delay(true), notTcp);
}

// nullopt when the time is up.
net::Task<std::optional<TlsPump::Shaken>> shakeHands(TlsPump& pump, Millis within) {
  using namespace boost::asio::experimental::awaitable_operators;
  const auto first = co_await (pump.shakeHands() || net::sleepFor(within));
  if (first.index() != 0) co_return std::nullopt;
  co_return std::get<0>(first);
}

net::Task<> keepRunning(std::unique_ptr<TlsPump> pump, Stream plain) {
  co_await pump->run(std::move(plain));
}

Result<Socket> adopt(const net::Executor& executor, Fd fd) {
  Socket socket(executor);
  boost::system::error_code error;
  socket.assign(boost::asio::generic::stream_protocol(AF_UNIX, 0), fd.get(), error);
  if (error) return failSys("watch a socket", error.value());
  (void)fd.release();
  return socket;
}

// The plain end of a stream whose handshake is done.
Result<Stream> start(const net::Executor& executor, std::unique_ptr<TlsPump> pump) {
  CAY_ASSIGN(auto pair, sys::streamPair());
  CAY_ASSIGN(Socket inner, adopt(executor, std::move(pair.first)));
  CAY_ASSIGN(Socket outer, adopt(executor, std::move(pair.second)));
  const auto cut = std::make_shared<bool>(false);
  boost::asio::co_spawn(executor, keepRunning(std::move(pump), Stream{std::move(inner), {}, cut}),
                        boost::asio::detached);
  return Stream{std::move(outer), {}, cut};
}

}  // namespace

net::Task<std::expected<Stream, TlsFailure>> acceptTls(std::shared_ptr<TlsContext> context,
                                                       Stream client, Millis within) {
  const net::Executor executor = co_await boost::asio::this_coro::executor;
  auto session = TlsSession::server(*context);
  if (!session) co_return std::unexpected(TlsFailure{});
  sendAtOnce(client.socket);
  auto pump = std::make_unique<TlsPump>(*std::move(session), std::move(client));
  const auto shaken = co_await shakeHands(*pump, within);
  if (shaken == TlsPump::Shaken::kDone) {
    std::string name = pump->session().serverName();
    auto plain = start(executor, std::move(pump));
    if (!plain) co_return std::unexpected(TlsFailure{std::move(name), Why::kOther});
    co_return *std::move(plain);
  }
  TlsFailure failure{pump->session().serverName(), Why::kOther};
  if (!shaken) {
    failure.why = Why::kTimeout;
  } else if (pump->session().distrusted() ||
             (shaken == TlsPump::Shaken::kLeft && pump->hasSpoken())) {
    failure.why = Why::kUnknownCa;
  }
  co_return std::unexpected(std::move(failure));
}

net::Task<Result<Stream>> connectTls(std::shared_ptr<TlsContext> context, Stream server,
                                     std::string name, Millis within) {
  const net::Executor executor = co_await boost::asio::this_coro::executor;
  CAY_CO_ASSIGN(auto session, TlsSession::client(*context, name));
  sendAtOnce(server.socket);
  auto pump = std::make_unique<TlsPump>(std::move(session), std::move(server));
  const auto shaken = co_await shakeHands(*pump, within);
  const std::string with = "TLS with " + quoted(name) + ": ";
  if (!shaken) co_return fail(Code::kTimeout, with + "the server took too long");
  switch (*shaken) {
    case TlsPump::Shaken::kBroken:
      co_return fail(Code::kUnreachable, with + pump->session().reason());
    case TlsPump::Shaken::kLeft:
      co_return fail(Code::kUnreachable, with + "the server closed the connection");
    case TlsPump::Shaken::kDone:
      break;
  }
  co_return start(executor, std::move(pump));
}

}  // namespace cay::hub
