// An HTTP server on a loopback port for the length of a test.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <stdexcept>
#include <utility>

#include "net/handler.h"
#include "net/server.h"
#include "net/worker_pool.h"
#include "testing/loop_thread.h"
#include "testing/raw_client.h"

namespace cay::testing {

class TestServer {
 public:
  explicit TestServer(net::Handler& handler, const net::ServerLimits& limits = {}) {
    const boost::asio::ip::tcp::endpoint any(boost::asio::ip::address_v4::loopback(), 0);
    server_ = loop_.call([&] {
      auto server = net::Server::listen(loop_.io(), {any}, handler, limits, &workers_);
      if (!server) throw std::runtime_error(server.error().message);
      return *std::move(server);
    });
    port_ = server_->port();
  }
  ~TestServer() {
    loop_.call([&] { server_.reset(); });
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  [[nodiscard]] uint16_t port() const { return port_; }
  RawClient connect() const { return RawClient::connect(port_); }
  LoopThread& loop() { return loop_; }
  void stop() {
    loop_.call([&] { server_->stop(); });
  }
  size_t connections() {
    return loop_.call([&] { return server_->connections(); });
  }
  // On the loop's thread.
  void adopt(net::Stream stream, net::Peer peer) {
    server_->adopt(std::move(stream), std::move(peer));
  }
  // False if the number of connections does not become `count` in time.
  bool awaitConnections(size_t count) {
    for (int i = 0; i < 1500; ++i) {
      if (connections() == count) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

 private:
  LoopThread loop_;
  net::WorkerPool workers_{1};
  std::unique_ptr<net::Server> server_;
  uint16_t port_ = 0;
};

}  // namespace cay::testing
