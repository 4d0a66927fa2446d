#include "hub/serve.h"

#include <boost/asio/basic_signal_set.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "hub/api_error.h"
#include "hub/ca.h"
#include "hub/certificates.h"
#include "hub/first_start.h"
#include "hub/paths.h"
#include "hub/run_file.h"
#include "hub/schema.h"
#include "hub/store.h"
#include "hub/tls_stream.h"
#include "net/await.h"
#include "net/event.h"
#include "net/peer.h"
#include "net/server.h"
#include "sys/io.h"
#include "sys/signal_name.h"

namespace cay::hub {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, net::Executor>;
using SignalSet = asio::basic_signal_set<net::Executor>;

constexpr int kExitFailure = 1;
constexpr size_t kMostPemBytes = size_t{1} << 20;

Result<Certificate> readOwnCertificate(const ServeOptions& options) {
  Certificate own;
  CAY_ASSIGN(own.certificatePem, sys::readFile(options.tlsCert.c_str(), kMostPemBytes));
  CAY_ASSIGN(own.keyPem, sys::readFile(options.tlsKey.c_str(), kMostPemBytes));
  CAY_ASSIGN(const CertificatePtr certificate, readCertificate(own.certificatePem));
  own.expiresMs = expiresMs(*certificate);
  return own;
}

class Hub final : public net::Handler {
 public:
  explicit Hub(const ServeOptions& options) : options_(options), paths_{options.state} {}

  int run() {
    // Before anything is started, so that no moment is left in which a signal would just kill us.
    stopSignals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      why_ = "signal " + std::string(sys::signalName(number));
      told_.notifyAll();
    });
    asio::co_spawn(io_, main(), [this](const std::exception_ptr&, int code) {
      exitCode_ = code;
      io_.stop();
    });
    io_.run();
    return exitCode_;
  }

  net::Task<> handle(const net::RequestHead&, net::Body&, net::Response& response) override {
    (void)co_await sendApiError(response, {404, "there is no such route", ""});
  }

 private:
  net::Task<int> main() {
    if (const auto started = co_await start(); !started) {
      (void)std::fprintf(stderr, "cay serve: %s\n", started.error().message.c_str());
      co_return kExitFailure;
    }
    while (why_.empty()) co_await told_.wait(net::Event::kForever);
    log(Level::kInfo, "stopping", {{"reason", why_}});
    for (Acceptor& acceptor : tlsAcceptors_) acceptor.close();
    server_->stop();
    store_.reset();
    co_return 0;
  }

  net::Task<Result<>> start() {
    CAY_CO_ASSIGN(run_, RunFile::claim(paths_));
    {
      CAY_CO_ASSIGN(Database database, openHubDatabase(paths_.database()));
      CAY_CO_TRY(makeFirstTokens(database, paths_, machineUser(), wallMs()));
      tellLostTokens(database);
    }
    CAY_CO_TRY(prepareTls());
    CAY_CO_ASSIGN(store_, co_await Store::open(paths_.database()));
    const tcp::endpoint api(asio::ip::address_v4::loopback(), options_.port);
    CAY_CO_ASSIGN(server_, net::Server::listen(io_, {api}, *this, {}));
    CAY_CO_TRY(listenTls());
    const RunInfo info{.api = "http://127.0.0.1:" + std::to_string(server_->port()),
                       .tlsPort = tlsPort_,
                       .domain = options_.domain,
                       .ownCertificate = !options_.tlsCert.empty()};
    CAY_CO_TRY(run_->write(info));
    (void)std::puts(json::serialize(json::Object{{"ready", true},
                                                 {"api", info.api},
                                                 {"tls_port", info.tlsPort},
                                                 {"domain", info.domain},
                                                 {"state", toValidUtf8(paths_.state)}})
                        .c_str());
    (void)std::fflush(stdout);
    co_return Result<>();
  }

  void tellLostTokens(Database& database) {
    for (const Role role : {Role::kAdmin, Role::kUser, Role::kProxy}) {
      const auto token = tokenInFile(database, paths_, role, wallMs());
      if (!token) log(Level::kWarn, token.error().message);
    }
  }

  Result<> prepareTls() {
    Certificate certificate;
    if (options_.tlsCert.empty()) {
      CAY_ASSIGN(Ca ca, Ca::open(paths_.ca(), options_.domain, wallMs()));
      CAY_ASSIGN(certificate, ca.leaf(wallMs()));
    } else {
      CAY_ASSIGN(certificate, readOwnCertificate(options_));
    }
    CAY_ASSIGN(context_, TlsContext::server(certificate));
    return {};
  }

  // On one port for all addresses.
  Result<> listenTls() {
    tlsPort_ = options_.tlsPort;
    for (const std::string& address : options_.listen) {
      const tcp::endpoint at(asio::ip::make_address(address), tlsPort_);
      Acceptor& acceptor = tlsAcceptors_.emplace_back(io_.get_executor());
      boost::system::error_code error;
      acceptor.open(at.protocol(), error);
      // A machine without IPv6 is one on which nobody comes by it.
      if (error == asio::error::address_family_not_supported) {
        tlsAcceptors_.pop_back();
        continue;
      }
      if (!error) acceptor.set_option(Acceptor::reuse_address(true), error);
      if (!error && at.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
      if (!error) acceptor.bind(at, error);
      if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
      if (error) {
        return failSys("listen on " + address + " port " + std::to_string(tlsPort_), error.value());
      }
      tlsPort_ = acceptor.local_endpoint().port();
      asio::co_spawn(io_, acceptAll(acceptor), asio::detached);
    }
    return {};
  }

  net::Task<> acceptAll(Acceptor& acceptor) {
    while (true) {
      auto [error, socket] = co_await acceptor.async_accept(net::kAwait);
      if (error == asio::error::operation_aborted) co_return;
      if (error) {
        co_await net::sleepFor(Millis(10));
        continue;
      }
      const net::Peer peer = net::peerOf(socket.native_handle());
      asio::co_spawn(io_, serveTls(net::Stream{std::move(socket), {}}, peer), asio::detached);
    }
  }

  net::Task<> serveTls(net::Stream stream, net::Peer peer) {
    auto plain = co_await acceptTls(context_, std::move(stream));
    if (!plain) co_return;
    peer.tls = true;
    server_->adopt(*std::move(plain), std::move(peer));
  }

  const ServeOptions& options_;
  const Paths paths_;
  asio::io_context io_{1};
  SignalSet stopSignals_{io_.get_executor(), SIGTERM, SIGINT};
  std::string why_;  // why it stops
  net::Event told_;
  std::optional<RunFile> run_;
  std::shared_ptr<TlsContext> context_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<net::Server> server_;
  std::deque<Acceptor> tlsAcceptors_;
  uint16_t tlsPort_ = 0;
  int exitCode_ = kExitFailure;
};

}  // namespace

int serve(const ServeOptions& options) {
  return Hub(options).run();
}

}  // namespace cay::hub
