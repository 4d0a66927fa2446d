#include "hub/tls_listener.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "hub/tls_stream.h"

namespace cay::hub {
namespace {

// At the same time; who comes when there are as many has to come again.
constexpr size_t kMostHandshakes = 512;

}  // namespace

TlsListener::TlsListener(boost::asio::io_context& io, std::shared_ptr<TlsContext> context,
                         Reachability& reachability)
    : core_(std::make_shared<Core>(
          Core{.io = io, .context = std::move(context), .reachability = reachability})) {}

Result<> TlsListener::listen(const std::vector<boost::asio::ip::tcp::endpoint>& at) {
  const auto take = [core = core_](net::Stream stream, net::Peer peer) {
    admit(core, std::move(stream), std::move(peer));
  };
  CAY_ASSIGN(listener_, net::Listener::listen(core_->io, at, take));
  return {};
}

void TlsListener::stop() {
  core_->server = nullptr;
  if (listener_) listener_->stop();
}

void TlsListener::admit(const std::shared_ptr<Core>& core, net::Stream stream, net::Peer peer) {
  if (core->handshakes >= kMostHandshakes) return;
  boost::asio::co_spawn(core->io, shakeHands(core, std::move(stream), std::move(peer)),
                        boost::asio::detached);
}

net::Task<> TlsListener::shakeHands(std::shared_ptr<Core> core, net::Stream stream,
                                    net::Peer peer) {
  ++core->handshakes;
  auto plain = co_await acceptTls(core->context, std::move(stream));
  --core->handshakes;
  if (plain) {
    peer.tls = true;
    if (core->server != nullptr) core->server->adopt(*std::move(plain), std::move(peer));
  } else if (plain.error().why == TlsFailure::Why::kUnknownCa) {
    core->reachability.tlsRefused(plain.error().serverName);
  }
}

}  // namespace cay::hub
