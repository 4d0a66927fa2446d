#include "net/listener.h"

#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "net/await.h"
#include "net/event.h"
#include "net/peer.h"
#include "net/task.h"
#include "sys/socket.h"

namespace cay::net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol, Executor>;

constexpr Millis kPauseWithoutDescriptors{100};
// Connections accepted in a row before others get their turn.
constexpr int kAcceptBurst = 64;

bool isOutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

Task<> acceptLoop(std::shared_ptr<Acceptor> acceptor,
                  std::shared_ptr<const Listener::Admit> admit) {
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
      (*admit)(Stream{std::move(socket), {}}, peerOf(accepted));
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

class AsioListener final : public Listener {
 public:
  AsioListener(std::vector<std::shared_ptr<Acceptor>> acceptors, Admit admit)
      : acceptors_(std::move(acceptors)),
        port_(sys::localPort(acceptors_.front()->native_handle()).value_or(0)) {
    const auto shared = std::make_shared<const Admit>(std::move(admit));
    for (const auto& acceptor : acceptors_) {
      asio::co_spawn(acceptor->get_executor(), acceptLoop(acceptor, shared), asio::detached);
    }
  }
  ~AsioListener() override { close(); }
  AsioListener(const AsioListener&) = delete;
  AsioListener& operator=(const AsioListener&) = delete;

  [[nodiscard]] uint16_t port() const override { return port_; }
  void stop() override { close(); }

 private:
  void close() {
    for (const auto& acceptor : acceptors_) {
      boost::system::error_code ignored;
      acceptor->close(ignored);
    }
  }

  std::vector<std::shared_ptr<Acceptor>> acceptors_;
  uint16_t port_;
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

}  // namespace

Result<std::unique_ptr<Listener>> Listener::listen(asio::io_context& io,
                                                   const std::vector<tcp::endpoint>& at,
                                                   Admit admit) {
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
  return std::make_unique<AsioListener>(std::move(acceptors), std::move(admit));
}

Result<std::unique_ptr<Listener>> Listener::listenOn(asio::io_context& io, Fd listener,
                                                     Admit admit) {
  CAY_TRY(sys::takeListener(listener.get()));
  CAY_ASSIGN(auto acceptor, acceptorOver(io, std::move(listener)));
  return std::make_unique<AsioListener>(std::vector{std::move(acceptor)}, std::move(admit));
}

}  // namespace cay::net
