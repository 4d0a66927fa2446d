#include "hub/outbound.h"

#include <netdb.h>
#include <sys/socket.h>

#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/text.h"
#include "net/await.h"
#include "net/event.h"
#include "net/http_client.h"

namespace cay::hub {
namespace {

namespace asio = boost::asio;
using net::Stream;
using Endpoint = asio::generic::stream_protocol::endpoint;

std::string placeName(const std::string& host, uint16_t port) {
  return quoted(host) + " port " + std::to_string(port);
}

// Blocking.
Result<std::vector<Endpoint>> lookUp(const std::string& host, uint16_t port) {
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  const std::string name = bracketed ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int failed = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &raw);
  if (failed != 0) {
    return fail(Code::kUnreachable,
                "the name " + quoted(name) + " does not resolve: " + ::gai_strerror(failed));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, ::freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    endpoints.emplace_back(entry->ai_addr, entry->ai_addrlen);
  }
  return endpoints;
}

net::Task<Result<Stream>> connectTo(Endpoint endpoint) {
  net::Socket socket(co_await asio::this_coro::executor);
  const int family = endpoint.protocol().family();
  Fd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) co_return failSys("socket", errno);
  boost::system::error_code error;
  socket.assign(endpoint.protocol(), fd.get(), error);
  if (error) co_return failSys("watch a socket", error.value());
  (void)fd.release();
  const auto [refused] = co_await socket.async_connect(endpoint, net::kAwait);
  if (refused) co_return fail(Code::kUnreachable, refused.message());
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  co_return Stream{std::move(socket), {}};
}

}  // namespace

net::Task<Result<Stream>> Outbound::dial(std::string host, uint16_t port, Millis within) {
  using namespace asio::experimental::awaitable_operators;
  const bool byProxy = proxy_ && proxy_->isFor(host, port);
  auto first = co_await ((byProxy ? throughProxy(host, port) : connect(host, port)) ||
                         net::sleepFor(within));
  if (auto* dialled = std::get_if<0>(&first)) co_return std::move(*dialled);
  co_return fail(Code::kUnreachable, placeName(host, port) + " does not answer");
}

net::Task<Result<Stream>> Outbound::connect(std::string host, uint16_t port) {
  CAY_CO_ASSIGN(const auto endpoints,
                co_await lookups_.run([host, port] { return lookUp(host, port); }));
  Error last{.code = Code::kUnreachable, .sys = 0, .message = "it has no address"};
  for (const Endpoint& endpoint : endpoints) {
    auto stream = co_await connectTo(endpoint);
    if (stream) co_return stream;
    last = std::move(stream).error();
  }
  co_return fail(Code::kUnreachable, placeName(host, port) + ": " + last.message);
}

net::Task<Result<Stream>> Outbound::throughProxy(std::string host, uint16_t port) {
  const std::string by = "the proxy " + placeName(proxy_->host, proxy_->port);
  auto toProxy = co_await connect(proxy_->host, proxy_->port);
  if (!toProxy) co_return std::unexpected(std::move(toProxy).error().wrap(by));
  const auto exchange = net::ClientExchange::over(*std::move(toProxy));
  const std::string target = host + ":" + std::to_string(port);
  net::Fields fields;
  fields.add("Host", target);
  if (!proxy_->authorization.empty()) fields.add("Proxy-Authorization", proxy_->authorization);
  CAY_CO_TRY(co_await exchange->sendHead("CONNECT", target, fields, net::Framing::kNone, 0));
  auto head = co_await exchange->readHead(true);
  if (!head) co_return std::unexpected(std::move(head).error().wrap(by));
  if (head->status / 100 != 2) {
    co_return fail(Code::kUnreachable, by + " answered " + std::to_string(head->status) + " for " +
                                           placeName(host, port));
  }
  co_return exchange->release();
}

}  // namespace cay::hub
