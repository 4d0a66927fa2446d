#include "net/server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <csignal>
#include <utility>

#include "net/connection.h"
#include "net/listener.h"
#include "sys/socket.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Clients over the limit that are told so at the same time; more are just closed.
constexpr size_t kMaxRefusals = 32;

Task<> serveConnection(std::shared_ptr<ServerCore> core, Stream stream, Peer peer) {
  Connection connection(std::move(core), std::move(stream), std::move(peer));
  co_await connection.serve();
}

Task<> refuseConnection(std::shared_ptr<ServerCore> core, Stream stream) {
  struct Counted {
    explicit Counted(size_t& count) : count(count) { ++count; }
    ~Counted() { --count; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    size_t& count;
  };
  const Counted counted(core->refusals);
  Wire wire(std::move(stream));
  Deadline deadline(core->sweep, wire.socket());
  const std::string answer = closingAnswer(503, "too many connections, try again later");
  // A fresh socket takes this much at once; a client that makes it wait does not get it.
  const Pieces pieces{answer};
  if (sys::send(wire.socket().native_handle(), pieces.rest(), sys::More::kNo) < 0) co_return;
  co_await wire.lingeringClose(deadline);
}

void admit(const std::shared_ptr<ServerCore>& core, Stream stream, Peer peer) {
  const Executor executor = stream.socket.get_executor();
  if (core->connections.size() < core->limits.maxConnections) {
    asio::co_spawn(executor, serveConnection(core, std::move(stream), std::move(peer)),
                   asio::detached);
  } else if (core->refusals < kMaxRefusals) {
    asio::co_spawn(executor, refuseConnection(core, std::move(stream)), asio::detached);
  }
}

Millis sweepInterval(const ServerLimits& limits) {
  const Millis shortest =
      std::min({limits.headTimeout, limits.idleTimeout, limits.bodyTimeout, limits.answerTimeout});
  return std::clamp(shortest / 4, Millis(10), Millis(1000));
}

class AsioServer final : public Server {
 public:
  AsioServer(std::shared_ptr<ServerCore> core, std::unique_ptr<Listener> listener)
      : core_(std::move(core)), listener_(std::move(listener)) {}
  ~AsioServer() override { end(); }
  AsioServer(const AsioServer&) = delete;
  AsioServer& operator=(const AsioServer&) = delete;

  [[nodiscard]] uint16_t port() const override { return listener_->port(); }
  [[nodiscard]] size_t connections() const override { return core_->connections.size(); }
  void adopt(Stream stream, Peer peer) override {
    admit(core_, std::move(stream), std::move(peer));
  }
  void stop() override { end(); }

 private:
  void end() {
    core_->stopping = true;
    listener_->stop();
    for (Connection* connection : core_->connections) connection->closeIfIdle();
  }

  std::shared_ptr<ServerCore> core_;
  std::unique_ptr<Listener> listener_;
};

std::shared_ptr<ServerCore> makeCore(asio::io_context& io, Handler& handler,
                                     const ServerLimits& limits, WorkerPool* workers) {
  std::signal(SIGPIPE, SIG_IGN);
  return std::make_shared<ServerCore>(
      ServerCore{.handler = handler,
                 .limits = limits,
                 .workers = workers,
                 .sweep = std::make_shared<DeadlineSweep>(io.get_executor(), sweepInterval(limits)),
                 .connections = {}});
}

Listener::Admit admitTo(const std::shared_ptr<ServerCore>& core) {
  return [core](Stream stream, Peer peer) { admit(core, std::move(stream), std::move(peer)); };
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(asio::io_context& io,
                                               const std::vector<tcp::endpoint>& at,
                                               Handler& handler, const ServerLimits& limits,
                                               WorkerPool* workers) {
  auto core = makeCore(io, handler, limits, workers);
  CAY_ASSIGN(auto listener, Listener::listen(io, at, admitTo(core)));
  return std::make_unique<AsioServer>(std::move(core), std::move(listener));
}

Result<std::unique_ptr<Server>> Server::listenOn(asio::io_context& io, Fd listener,
                                                 Handler& handler, const ServerLimits& limits,
                                                 WorkerPool* workers) {
  auto core = makeCore(io, handler, limits, workers);
  CAY_ASSIGN(auto listening, Listener::listenOn(io, std::move(listener), admitTo(core)));
  return std::make_unique<AsioServer>(std::move(core), std::move(listening));
}

}  // namespace cay::net
