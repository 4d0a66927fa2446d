// TLS in front of an HTTP server: connections of its own port, and those that others bring.
// Handshakes happen here; what comes out of them is served like any other connection.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "hub/reachability.h"
#include "hub/tls_context.h"
#include "net/listener.h"
#include "net/server.h"
#include "net/stream.h"

namespace cay::hub {

class TlsListener {
 public:
  TlsListener(boost::asio::io_context& io, std::shared_ptr<TlsContext> context,
              Reachability& reachability);
  ~TlsListener() { stop(); }
  TlsListener(const TlsListener&) = delete;
  TlsListener& operator=(const TlsListener&) = delete;

  // Who serves them, until stop(); before the first one comes.
  void serveWith(net::Server& server) { core_->server = &server; }
  Result<> listen(const std::vector<boost::asio::ip::tcp::endpoint>& at);
  // After listen().
  [[nodiscard]] uint16_t port() const { return listener_->port(); }

  // Serves a connection that has come another way, as through a tunnel.
  void admit(net::Stream stream, net::Peer peer) {
    admit(core_, std::move(stream), std::move(peer));
  }
  void stop();

 private:
  // What handshakes in progress need, some of which outlive the listener.
  struct Core {
    boost::asio::io_context& io;
    std::shared_ptr<TlsContext> context;
    Reachability& reachability;
    net::Server* server = nullptr;  // none any more: connections are dropped
    size_t handshakes = 0;
  };

  static void admit(const std::shared_ptr<Core>& core, net::Stream stream, net::Peer peer);
  static net::Task<> shakeHands(std::shared_ptr<Core> core, net::Stream stream, net::Peer peer);

  std::shared_ptr<Core> core_;
  std::unique_ptr<net::Listener> listener_;
};

}  // namespace cay::hub
