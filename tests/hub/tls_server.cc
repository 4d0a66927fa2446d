// A hub's edge without a hub: the private CA, the TLS pump and CONNECT in front of the HTTP server,
// for tests with real clients.
//
//   hub_tls_server FOLDER     makes FOLDER/ca; ends with its standard input
//
// Prints one line of JSON when it is ready, and one for each handshake that fails.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "hub/ca.h"
#include "hub/edge_name.h"
#include "hub/tls_stream.h"
#include "net/await.h"
#include "net/peer.h"
#include "net/server.h"

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using cay::Result;
using cay::hub::Ca;
using cay::hub::TlsContext;
using cay::hub::TlsFailure;
using cay::net::Peer;
using cay::net::Stream;
using cay::net::Task;
using Acceptor = asio::basic_socket_acceptor<tcp, cay::net::Executor>;

constexpr const char* kDomain = "cay.localhost";

void say(const cay::json::Object& object) {
  (void)std::puts(cay::json::serialize(object).c_str());
  (void)std::fflush(stdout);
}

class Edge final : public cay::net::Handler {
 public:
  Edge(asio::io_context& io, std::shared_ptr<TlsContext> context)
      : io_(io), context_(std::move(context)) {}

  void serveWith(cay::net::Server& server) { server_ = &server; }

  Task<> serveTls(Stream stream, Peer peer) {
    auto plain = co_await cay::hub::acceptTls(context_, std::move(stream));
    if (plain) {
      peer.tls = true;
      server_->adopt(*std::move(plain), std::move(peer));
    } else {
      say({{"refused", plain.error().serverName},
           {"unknown_ca", plain.error().why == TlsFailure::Why::kUnknownCa}});
    }
  }

  Task<> handle(const cay::net::RequestHead& head, cay::net::Body& body,
                cay::net::Response& response) override {
    if (head.method == "CONNECT") {
      co_await connect(head, response);
    } else if (head.path == "/echo") {
      co_await echo(body, response);
    } else if (head.path == "/bytes") {
      co_await bytes(head, response);
    } else {
      (void)co_await cay::net::send(
          response, {}, head.peer.address + (head.peer.tls ? " by TLS" : " in the clear"));
    }
  }

 private:
  Task<> connect(const cay::net::RequestHead& head, cay::net::Response& response) {
    if (!cay::hub::parseEdgeHost(head.target, kDomain)) {
      (void)co_await cay::net::sendError(response, {cay::Code::kDenied, 0, "not one of ours"});
      co_return;
    }
    auto stream = co_await response.tunnel();
    if (stream) {
      asio::co_spawn(io_, serveTls(*std::move(stream), head.peer), asio::detached);
    }
  }

  static Task<> echo(cay::net::Body& body, cay::net::Response& response) {
    (void)response.begin({});
    std::string piece(64 * 1024, '\0');
    for (;;) {
      const auto count = co_await body.read(piece);
      if (!count || *count == 0) break;
      if (!co_await response.write(std::string_view(piece).substr(0, *count))) co_return;
    }
    (void)co_await response.finish();
  }

  static Task<> bytes(const cay::net::RequestHead& head, cay::net::Response& response) {
    (void)response.begin({});
    const std::string piece(64 * 1024, 'b');
    uint64_t left = cay::parseUint(head.query).value_or(0);
    while (left > 0) {
      const uint64_t count = std::min<uint64_t>(left, piece.size());
      if (!co_await response.write(std::string_view(piece).substr(0, count))) co_return;
      left -= count;
    }
    (void)co_await response.finish();
  }

  asio::io_context& io_;
  std::shared_ptr<TlsContext> context_;
  cay::net::Server* server_ = nullptr;
};

Task<> acceptAll(Acceptor& acceptor, Edge& edge) {
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(cay::net::kAwait);
    if (error) co_return;
    const Peer peer = cay::net::peerOf(socket.native_handle());
    asio::co_spawn(acceptor.get_executor(), edge.serveTls(Stream{std::move(socket), {}}, peer),
                   asio::detached);
  }
}

Task<> endWithInput(asio::io_context& io) {
  asio::posix::basic_stream_descriptor<cay::net::Executor> input(io.get_executor(), 0);
  char byte;
  (void)co_await input.async_read_some(asio::buffer(&byte, 1), cay::net::kAwait);
  io.stop();
}

Result<> serve(const std::string& folder) {
  CAY_ASSIGN(Ca ca, Ca::open(folder + "/ca", kDomain, cay::wallMs()));
  CAY_ASSIGN(const auto leaf, ca.leaf(cay::wallMs()));
  CAY_ASSIGN(const std::string bundle, ca.bundle());
  CAY_ASSIGN(const std::string hashed, ca.hashedFolder());
  CAY_ASSIGN(auto context, TlsContext::server(leaf));

  asio::io_context io(1);
  Edge edge(io, std::move(context));
  cay::net::ServerLimits limits;
  limits.connects = cay::net::Connects::kAllowed;
  const tcp::endpoint any(asio::ip::address_v4::loopback(), 0);
  CAY_ASSIGN(const auto server, cay::net::Server::listen(io, {any}, edge, limits));
  edge.serveWith(*server);
  Acceptor acceptor(io.get_executor(), any);
  asio::co_spawn(io, acceptAll(acceptor, edge), asio::detached);
  asio::co_spawn(io, endWithInput(io), asio::detached);
  say({{"tls_port", acceptor.local_endpoint().port()},
       {"port", server->port()},
       {"ca", ca.caFile()},
       {"bundle", bundle},
       {"hashed", hashed}});
  io.run();
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto served = serve(argv[1]);
  if (served) return 0;
  (void)std::fprintf(stderr, "%s\n", served.error().message.c_str());
  return 1;
}
