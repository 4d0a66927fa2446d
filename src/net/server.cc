#include "net/server.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <csignal>
#include <utility>

#include "net/await.h"
#include "net/connection.h"
#include "net/event.h"
#include "net/peer.h"
#include "sys/socket.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Clients over the limit that are told so at the same time; more are just closed.
constexpr size_t kMaxRefusals = 32;
constexpr Millis kPauseWithoutDescriptors{100};
// Connections accepted in a row before others get their turn.
constexpr int kAcceptBurst = 64;

using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;

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

bool isOutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Task<> acceptLoop(std::shared_ptr<ServerCore> core, std::shared_ptr<Acceptor> acceptor) {
  const Executor executor = acceptor->get_executor();
  const asio::generic::stream_protocol protocol = acceptor->local_endpoint().protocol();
  for (int burst = 0; acceptor->is_open();) {
    const int accepted = sys::accept(acceptor->native_handle());
    if (accepted >= 0) {
      Fd fd(accepted);
      Socket socket(executor);
      boost::system::error_code error;
      socket.assign(protocol, accepted, error);
      if (error) continue;  // the loop cannot watch more descriptors; this one is closed
      (void)fd.release();
      admit(core, Stream{std::move(socket), {}}, peerOf(accepted));
      if (++burst % kAcceptBurst == 0) co_await asio::post(asio::use_awaitable_t<Executor>());
    } else if (accepted == -EAGAIN) {
      co_await acceptor->async_wait(Acceptor::wait_read, kAwait);
    } else if (isOutOfResources(-accepted)) {
      // The waiting connection keeps the listener readable, so waiting for that would spin.
      co_await sleepFor(kPauseWithoutDescriptors);
    }
    // Anything else concerns a connection that is already gone.
  }
}

Millis sweepInterval(const ServerLimits& limits) {
  const Millis shortest =
      std::min({limits.headTimeout, limits.idleTimeout, limits.bodyTimeout, limits.answerTimeout});
  return std::clamp(shortest / 4, Millis(10), Millis(1000));
}

class AsioServer final : public Server {
 public:
  AsioServer(std::shared_ptr<ServerCore> core, std::vector<std::shared_ptr<Acceptor>> acceptors)
      : core_(std::move(core)), acceptors_(std::move(acceptors)) {
    port_ = sys::localPort(acceptors_.front()->native_handle()).value_or(0);
    for (const auto& acceptor : acceptors_) {
      asio::co_spawn(acceptor->get_executor(), acceptLoop(core_, acceptor), asio::detached);
    }
  }
  ~AsioServer() override { stop(); }
  AsioServer(const AsioServer&) = delete;
  AsioServer& operator=(const AsioServer&) = delete;

  [[nodiscard]] uint16_t port() const override { return port_; }
  [[nodiscard]] size_t connections() const override { return core_->connections.size(); }
  void adopt(Stream stream, Peer peer) override {
    admit(core_, std::move(stream), std::move(peer));
  }
  void stop() override {
    core_->stopping = true;
    for (const auto& acceptor : acceptors_) {
      boost::system::error_code ignored;
      acceptor->close(ignored);
    }
    for (Connection* connection : core_->connections) connection->closeIfIdle();
  }

 private:
  std::shared_ptr<ServerCore> core_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  uint16_t port_ = 0;
};

Result<std::shared_ptr<Acceptor>> acceptorOver(asio::io_context& io, Fd listener) {
  int family = AF_INET;
  socklen_t length = sizeof family;
  ::getsockopt(listener.get(), SOL_SOCKET, SO_DOMAIN, &family, &length);
  auto acceptor = std::make_shared<Acceptor>(io.get_executor());
  boost::system::error_code error;
  acceptor->assign(asio::generic::stream_protocol(family, 0), listener.get(), error);
  if (error) return failSys("watch the listening socket", error.value());
  (void)listener.release();
  return acceptor;
}

std::unique_ptr<Server> serverOver(asio::io_context& io,
                                   std::vector<std::shared_ptr<Acceptor>> acceptors,
                                   Handler& handler, const ServerLimits& limits,
                                   WorkerPool* workers) {
  std::signal(SIGPIPE, SIG_IGN);
  auto core = std::make_shared<ServerCore>(
      ServerCore{.handler = handler,
                 .limits = limits,
                 .workers = workers,
                 .sweep = std::make_shared<DeadlineSweep>(io.get_executor(), sweepInterval(limits)),
                 .connections = {}});
  return std::make_unique<AsioServer>(std::move(core), std::move(acceptors));
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(asio::io_context& io,
                                               const std::vector<tcp::endpoint>& at,
                                               Handler& handler, const ServerLimits& limits,
                                               WorkerPool* workers) {
  if (at.empty()) return fail(Code::kInvalid, "there is no address to listen on");
  std::vector<std::shared_ptr<Acceptor>> acceptors;
  for (tcp::endpoint endpoint : at) {
    if (endpoint.port() == 0 && !acceptors.empty()) {
      CAY_ASSIGN(const uint16_t first, sys::localPort(acceptors.front()->native_handle()));
      endpoint.port(first);
    }
    auto listener = sys::listenTcp(endpoint.data(), static_cast<socklen_t>(endpoint.size()));
    if (!listener) {
      return std::unexpected(
          std::move(listener).error().wrap("listen on " + endpoint.address().to_string() +
                                           " port " + std::to_string(endpoint.port())));
    }
    CAY_ASSIGN(auto acceptor, acceptorOver(io, *std::move(listener)));
    acceptors.push_back(std::move(acceptor));
  }
  return serverOver(io, std::move(acceptors), handler, limits, workers);
}

Result<std::unique_ptr<Server>> Server::listenOn(asio::io_context& io, Fd listener,
                                                 Handler& handler, const ServerLimits& limits,
                                                 WorkerPool* workers) {
  CAY_TRY(sys::takeListener(listener.get()));
  CAY_ASSIGN(auto acceptor, acceptorOver(io, std::move(listener)));
  return serverOver(io, {std::move(acceptor)}, handler, limits, workers);
}

}  // namespace cay::net
